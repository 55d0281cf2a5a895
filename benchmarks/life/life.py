#!/usr/bin/env python3
"""Benchmark `life`: what happens to schedules besides their making: tenants, little memory, late GPUs, failures;
and TE-CCL's remaining tables and figures.

--json FILE: where the results go; with --only rows of other cases there stay. --only SUBSTRING: these cases alone.
--ranks N (default 2), --rondo PROGRAM. --failures N: random failures (default 40; the results have 500).
"""

import argparse
import datetime
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import failures
import teccl

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Runs:
    def __init__(self, rondo, ranks, only, folder):
        self.rondo, self.ranks, self.only, self.folder, self.rows, self.failed = rondo, ranks, only, folder, [], 0

    def wants(self, table, case):
        return self.only in f"{table} {case}"

    def add(self, table, case, **columns):
        self.rows.append({"table": table, "case": case, **columns})
        print(table, case, {k: round(v, 4) if isinstance(v, float) else v for k, v in columns.items()}, flush=True)

    def run(self, *words, ranks=None):
        """(exit code, seconds, standard error)"""
        command = ["mpirun", "-n", str(self.ranks)] if ranks is None else []
        begin = time.monotonic()
        done = subprocess.run([*command, str(self.rondo), *map(str, words)], capture_output=True, text=True, check=False)
        return done.returncode, time.monotonic() - begin, done.stderr

    def fail(self, what, code, error):
        self.failed += 1
        print(f"FAILED ({code}): {what}: {error.strip()[-300:]}", file=sys.stderr, flush=True)

    def solve(self, name, *words, ranks=None):
        """The verified report with its seconds, or nothing, which is told and counted."""
        folder = self.folder / name
        code, seconds, error = self.run("solve", "--force", "--output", folder, *words, ranks=ranks)
        if code == 0:
            code, _, error = self.run("verify", folder, ranks=1)
        if code != 0:
            self.fail(" ".join(words), code, error)
            return None
        report = json.loads((folder / "report.json").read_text())
        report["wall_s"] = seconds
        return report


def diagonal(tenant):
    """Of 8 boxes of 4 one GPU a box, or of 4 leaves of 4 one a leaf; from place to place another one."""
    return lambda boxes: ",".join(str(4 * box + (tenant + box * (1 + tenant // 4)) % 4) for box in range(boxes))


def tenants(runs):
    two = ["--tenant", "train:collective=allgather,size=256MB", "--tenant", "serve:collective=alltoall,size=64MB,priority=8"]
    for fabric, boxes in (("rails:boxes=8,gpus=4", 8), ("fat_tree:leaves=4,gpus=4", 4)):
        eight = []
        for t in range(8):
            collective = ("allgather", "alltoall")[t % 2]
            eight += ["--tenant", f"t{t}:collective={collective},size={8 * 2 ** (t % 4)}MB,group={diagonal(t)(boxes)},priority={t + 1}"]
        for number, words in (("two", two), ("eight", eight)):
            for objective in ("finish", "weighted"):
                case = f"{number} tenants, {fabric}, {objective}"
                if not runs.wants("tenants", case):
                    continue
                report = runs.solve("tenants", "--topology", fabric, *words, "--objective", objective, "--improve-work", "1e4",
                                    "--gap", "1%")
                if report is None:
                    continue
                shared, metrics = report["tenants"], report["metrics"]
                runs.add("tenants", case, tenants=number, fabric=fabric, objective=objective, engine=report["engine"],
                         finish_us=report["finish_us"], lower_bound_us=report["lower_bound_us"], gap=report["gap"],
                         weighted_us=shared["weighted_us"], weighted_bound_us=shared["weighted_bound_us"],
                         weighted_gap=shared["weighted_us"] / shared["weighted_bound_us"] - 1,
                         largest_slowdown=shared["largest_slowdown"],
                         blind_finish_us=metrics.get("blind_sharing_finish_us"),
                         blind_weighted_us=metrics.get("blind_sharing_weighted_us"),
                         after_finish_us=metrics["one_after_the_other_finish_us"],
                         after_weighted_us=metrics["one_after_the_other_weighted_us"],
                         ends=[[each["name"], each["priority"], each["finish_us"], each["slowdown"]] for each in shared["each"]],
                         wall_s=report["wall_s"])


def memory(runs):
    """A chunk is a fixed part of what a pair exchanges, so that memory counts in chunks."""
    for fabric, group, size, chunks, chunk_bytes in (
            ("torus:dims=4x4", "0,2,8,10", "64MB", 4, 4_000_000), ("ndv2-2", "0-3,8-11", "64MB", 4, 2_000_000),
            ("rails:boxes=4", "0,9,18,27", "64MB", 4, 4_000_000), ("mesh:dims=4x4", "0,3,12,15", "64MB", 4, 4_000_000)):
        for held in (0, 1, 2, 4, None):
            case = f"{fabric} {'any' if held is None else held}"
            if not runs.wants("memory", case):
                continue
            words = ["--topology", fabric, "--collective", "alltoall", "--group", group, "--size", size, "--chunks", str(chunks)]
            words += [] if held is None else ["--relay-memory", str(held * chunk_bytes) + ("" if held == 0 else "B")]
            folder = runs.folder / "memory"
            code, seconds, error = runs.run("solve", "--force", "--output", folder, *words)
            if code == 69:
                why = next(line for line in error.splitlines() if line.startswith("rondo:"))[:300]
                runs.add("memory", case, fabric=fabric, memory_chunks=held, refused=why)
                continue
            if code != 0 or runs.run("verify", folder, ranks=1)[0] != 0:
                runs.failed += 1
                continue
            report = json.loads((folder / "report.json").read_text())
            runs.add("memory", case, fabric=fabric, memory_chunks=held, finish_us=report["finish_us"],
                     lower_bound_us=report["lower_bound_us"], gap=report["gap"], engine=report["engine"],
                     peak_relay_bytes=report["peak_relay_bytes"], chunk_bytes=chunk_bytes, wall_s=seconds)


def stragglers(runs):
    """A GPU that is late; beside the schedule that knows it the one that does not: in its own order, or where that goes
    against late parts of sums, all of it once the last part is there."""
    for fabric, size in (("ndv2-2", "16MB"), ("rails:boxes=2,rails=4", "16MB")):
        for collective in ("allgather", "allreduce"):
            words = ["--topology", fabric, "--collective", collective, "--size", size, "--improve-work", "1e5"]
            unaware = None
            for late in (1, 10, 100, 1000):
                case = f"{fabric} {collective} {late}"
                if not runs.wants("stragglers", case):
                    continue
                unaware = unaware or runs.solve("unaware", *words)
                report = runs.solve("stragglers", *words, "--ready", f"1:{late}")
                if not report or not unaware:
                    continue
                again = runs.folder / "again.json"
                code, _, error = runs.run("replay", runs.folder / "unaware", "--ready", f"1:{late}", "--output", again, ranks=1)
                if code not in (0, 69):
                    runs.fail(case, code, error)
                    continue
                unaware_us = json.loads(again.read_text())["finish_us"] if code == 0 else unaware["finish_us"] + late
                runs.add("stragglers", case, fabric=fabric, collective=collective, late_us=late, finish_us=report["finish_us"],
                         lower_bound_us=report["lower_bound_us"], gap=report["gap"], engine=report["engine"],
                         unaware_us=unaware_us, unaware_in_order=code == 0, wall_s=report["wall_s"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "benchmarks/results/life.json")
    parser.add_argument("--only", default="")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rondo", type=pathlib.Path, default=ROOT / "build/release/rondo")
    parser.add_argument("--failures", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(options.rondo, options.ranks, options.only, pathlib.Path(folder))
        tenants(runs)
        memory(runs)
        stragglers(runs)
        teccl.all_of(runs)
        failures.single_failures(runs)
        failures.random_failures(runs, options.failures)
    rows = runs.rows
    if options.only and options.json.exists():
        made = {(row["table"], row["case"]) for row in rows}
        rows = [row for row in json.loads(options.json.read_text())["rows"] if (row["table"], row["case"]) not in made] + rows
    head = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "processor": platform.processor(),
            "ranks": options.ranks}
    # A row a line.
    options.json.write_text(json.dumps(head, indent=1)[:-2] + ',\n "rows": [\n'
                            + ",\n".join("  " + json.dumps(row) for row in rows) + "\n ]\n}\n")
    return 1 if runs.failed else 0


if __name__ == "__main__":
    sys.exit(main())
