#!/usr/bin/env python3
"""benchmarks/run.sh catalogue [--only SUBSTRING] [--json FILE] [--ranks N] [--kills N] [--sizes RANGE] [--random-sizes N]
                                [--steps NAME,...]

Builds the catalogue of four fabrics (five collectives, 21 sizes); verifies it, looks random sizes up (10,000) beside the best
that the catalogue has, exports it, and then, with a twentieth of the links at half their bandwidth, compares catalogue check
and refresh with a catalogue that is built there from nothing. A build of the same is killed N times (10) and finished. Case
"kills" kills builds of a small catalogue, 20 times as often, on one rank and on several in turn, until each is finished.
Cases "sketches FABRIC" build three collectives at three sizes without sketches and with at most eight a cell.
"""
import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FABRICS = ["dgx1", "ndv2-2", "rails:boxes=4", "dgx2-2"]
SMALL = ["--topology", "ring:gpus=4", "--sizes", "1KiB,16KiB,256KiB,4MiB,64MiB", "--improve-work", "1e3"]
DEGRADED = ["--degrade", "0.05:0.5"]
SKETCHED = {"dgx1v x 2, rails": ["dgx1v", "2", "rails"], "dgx-h100 x 2, fat_tree": ["dgx-h100", "2", "fat_tree"],
            "ndv2-2": None, "rails:boxes=2": None}
SKETCHES = "8"


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command):
    """Output, wall seconds, and CPU seconds of all its processes."""
    wall, cpu = time.monotonic(), cpu_s()
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return output, time.monotonic() - wall, cpu_s() - cpu


def kill_session(leader):
    """Ranks have process groups of their own."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            session = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3])
            if entry.name.isdigit() and session == leader:
                os.kill(int(entry.name), signal.SIGKILL)
        except (OSError, IndexError, ValueError):
            pass


def build_with_kills(command, folder, kills, cells, cell_s):
    """Kills as equal shares of the cells are there, the last time as all are, each up to a cell's time later; counts
    the kills that came before the end."""
    chance = random.Random(0)
    done = 0
    for kill in range(1, kills + 1):
        process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(cell_files(folder)) < kill * cells // kills:
            time.sleep(0.02)
        try:
            process.wait(chance.uniform(0, cell_s))
        except subprocess.TimeoutExpired:
            kill_session(process.pid)
            process.wait()
            done += 1
    return done


def kill_often(options, scratch):
    """Every build is killed at random times until one attempt ends; then it has to say what an undisturbed one says."""
    build = [str(options.rondo), "catalogue", "build", *SMALL, "--output"]
    whole = scratch / "whole"
    _, seconds, _ = run(build + [str(whole)])
    expected = content(whole)
    chance = random.Random(0)
    row = {"fabric": "kills", "kills": 0, "builds": 0, "cells": len(cell_files(whole)), "wrong": 0}
    while row["kills"] < 20 * options.kills:
        killed = scratch / f"killed-{row['builds']}"
        ranks = 1 + row["builds"] % options.ranks
        command = (["mpirun", "-n", str(ranks)] if ranks > 1 else []) + build + [str(killed)]
        while True:
            process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(chance.uniform(0.05, seconds))
                break
            except subprocess.TimeoutExpired:
                kill_session(process.pid)
                process.wait()
                row["kills"] += 1
        verified = subprocess.run([str(options.rondo), "catalogue", "verify", str(killed)], stdout=subprocess.DEVNULL)
        row["wrong"] += process.returncode != 0 or verified.returncode != 0 or content(killed) != expected
        row["builds"] += 1
        shutil.rmtree(killed)
    return row


def compare_sketches(fabric, options, scratch):
    """Every cell as it was made, without sketches and with them."""
    topology = fabric
    if SKETCHED[fabric]:
        node, nodes, network = SKETCHED[fabric]
        topology = str(scratch / "fabric.json")
        run([str(options.rondo), "topology", "compose", "--node", node, "--nodes", nodes, "--network", network, "--output", topology])
    build = ["mpirun", "-n", str(options.ranks), str(options.rondo), "catalogue", "build", "--topology", topology,
             "--collectives", "allgather,alltoall,allreduce", "--sizes", "16KB,1MB,64MB"]
    row = {"fabric": f"sketches {fabric}", "cells": []}
    _, _, row["cpu_s"] = run(build + ["--output", str(scratch / "without")])
    _, _, row["sketches_cpu_s"] = run(build + ["--sketches", SKETCHES, "--output", str(scratch / "with")])
    run([str(options.rondo), "catalogue", "verify", str(scratch / "with")])
    sketched = content(scratch / "with")
    for path, cell in content(scratch / "without").items():
        if "size_bytes" in cell:
            row["cells"].append({"on": fabric, "collective": cell["series"]["collective"], "size_bytes": cell["size_bytes"],
                                 "finish_us": cell["finish_us"], "gap": cell["gap"], "sketched_us": sketched[path]["finish_us"],
                                 "sketch": sketched[path].get("sketch")})
    row["cells"].sort(key=lambda cell: (cell["collective"], cell["size_bytes"]))
    return row


def cell_files(folder):
    return [path for path in folder.glob("cells/*/*.json") if path.name != "bins.json"]


def content(folder):
    """What a catalogue says, without how long it took."""
    said = {}
    for path in sorted(folder.glob("cells/*/*.json")):
        cell = json.loads(path.read_text())
        for key in ("wall_s", "checksum"):
            cell.pop(key, None)
        said[str(path.relative_to(folder))] = cell
    return said


def finishes(folder, fabric):
    found = {}
    for path in folder.glob("cells/*/bins.json"):
        bins = json.loads(path.read_text())
        if bins["series"]["fabric"] == fabric:
            for cell in bins["cells"]:
                found[bins["series"]["collective"], cell["size_bytes"]] = cell["finish_us"]
    return found


class Case:
    """A fabric's row, and the folders that it comes from."""

    def __init__(self, fabric, options, scratch):
        self.fabric, self.options, self.scratch = fabric, options, scratch
        self.mpirun = ["mpirun", "-n", str(options.ranks), str(options.rondo)]
        self.build = self.mpirun + ["catalogue", "build", "--topology", fabric, "--sizes", options.sizes, "--output"]
        self.built = scratch / "built"
        self.row = {"fabric": fabric, "ranks": options.ranks}

    def build_whole(self):
        _, self.row["wall_s"], self.row["cpu_s"] = run(self.build + [str(self.built)])
        tables = [json.loads(path.read_text()) for path in self.built.glob("cells/*/bins.json")]
        self.row["cells"] = sum(len(table["cells"]) for table in tables)
        self.row["bins"] = sum(len(table["bins"]) for table in tables)
        self.row["schedules"] = len({bin["schedule"] for table in tables for bin in table["bins"]})

    def build_killed(self):
        killed = self.scratch / "killed"
        cell_s = self.options.ranks * self.row["wall_s"] / self.row["cells"]
        self.row["kills"] = build_with_kills(self.build + [str(killed)], killed, self.options.kills,
                                             self.row["cells"], cell_s)
        run(self.build + [str(killed)])
        self.row["same_after_kills"] = content(self.built) == content(killed)

    def look_up(self):
        run([str(self.options.rondo), "catalogue", "prune", str(self.built)])
        self.row["bytes"] = sum(path.stat().st_size for path in self.built.rglob("*") if path.is_file())
        text, _, _ = run(self.mpirun + ["catalogue", "verify", str(self.built), "--random-sizes",
                                        str(self.options.random_sizes)])
        found = re.search(r"(\d+) random sizes: (\d+) .* loss ([\d.]+) %, mean ([\d.]+) %; a look-up takes ([\d.]+) us", text)
        self.row["sampled"] = {"sizes": int(found[1]), "best": int(found[2]), "largest_loss": float(found[3]) / 100,
                               "mean_loss": float(found[4]) / 100, "lookup_us": float(found[5])}

    def export(self):
        _, _, self.row["export_cpu_s"] = run([str(self.options.rondo), "catalogue", "export", str(self.built), "--output",
                                              str(self.scratch / "xml")])
        exported = json.loads((self.scratch / "xml.json").read_text())["series"]
        self.row["programs"] = sum(len(series["programs"]) for series in exported)
        self.row["programs_largest_loss"] = max(series["largest_loss"] for series in exported)

    def refresh(self):
        there = ["--topology", self.fabric, *DEGRADED]
        text, _, self.row["check_cpu_s"] = run(self.mpirun + ["catalogue", "check", str(self.built), *there])
        self.row["verdicts"] = text.strip().splitlines()[-1]
        before = set(self.built.glob("fabrics/*.json"))
        _, _, self.row["refresh_cpu_s"] = run(self.mpirun + ["catalogue", "refresh", str(self.built), *there])
        newer = (set(self.built.glob("fabrics/*.json")) - before).pop().stem
        fresh = self.scratch / "fresh"
        _, _, self.row["fresh_cpu_s"] = run(self.build + [str(fresh), *DEGRADED])
        refreshed, anew = finishes(self.built, newer), finishes(fresh, newer)
        ratios = [refreshed[cell] / anew[cell] for cell in anew]
        self.row["refreshed_over_fresh"] = {"least": min(ratios), "most": max(ratios), "mean": sum(ratios) / len(ratios)}


STEPS = {"kills": Case.build_killed, "look-up": Case.look_up, "export": Case.export, "refresh": Case.refresh}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "benchmarks/results/catalogue.json")
    parser.add_argument("--rondo", type=pathlib.Path, default=ROOT / "build/release/rondo")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--sizes", default="1KiB..1GiB")
    parser.add_argument("--random-sizes", type=int, default=10000)
    parser.add_argument("--steps", default=",".join(STEPS), help="what to do with the catalogue that was built (default: all)")
    options = parser.parse_args()
    rows = json.loads(options.json.read_text())["rows"] if options.json.exists() else []
    for fabric in FABRICS + ["kills"] + [f"sketches {name}" for name in SKETCHED]:
        if options.only not in fabric:
            continue
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="rondo-catalogue-"))
        try:
            if fabric == "kills":
                row = kill_often(options, scratch)
            elif fabric.startswith("sketches "):
                row = compare_sketches(fabric.removeprefix("sketches "), options, scratch)
            else:
                case = Case(fabric, options, scratch)
                case.build_whole()
                for step in options.steps.split(","):
                    STEPS[step](case)
                row = case.row
        finally:
            shutil.rmtree(scratch)
        print(json.dumps(row), flush=True)
        rows = [other for other in rows if other["fabric"] != fabric] + [row]
        options.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
