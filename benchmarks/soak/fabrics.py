#!/usr/bin/env python3
"""Random small fabrics and demands: each is solved, and the schedule and its certificate are judged by `rondo verify` and by the
reference replay (io/conformance), which shares no code with Rondo.

    fabrics.py --rondo PROGRAM [--seed N] [--first N] [--count N] [--seconds N] [--only NAME] [--keep FOLDER]

A finding is a run that ends with another exit code than 0 (or is refused: no engine takes the problem, or no way stays within the
group), a remark that names a fault of Rondo, or a schedule that one of the two refuses. Its files stay in a folder of FOLDER
(default: the working folder), from which the command that is printed solves it again. Exit code 0 without a finding, 1 with one.
"""
import argparse
import collections
import json
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "io" / "conformance"))

import replay  # noqa: E402
from schedule_file import Invalid, equal  # noqa: E402

# Those that combine stand twice.
COLLECTIVES = ["allgather", "alltoall", "broadcast", "scatter", "gather"] + 2 * ["reduce_scatter", "allreduce", "reduce"] + ["custom"]
ROOTED = {"broadcast", "scatter", "gather", "reduce"}
WITH_COUNTS = {"allgather", "reduce_scatter", "scatter", "gather", "alltoall"}
SIZES = {"1KB": 1e3, "16KB": 16e3, "64KB": 64e3, "256KB": 256e3, "1MB": 1e6, "16MB": 16e6, "1GB": 1e9}
NO_ENGINE = 69
NO_WAY = "has no path between them that stays within the group"


def fabric(rng):
    """A fabric of 3 to 8 GPUs and up to 5 switches of every kind; from each GPU a way leads to every other. And the number of GPUs."""
    gpus, switches = rng.choice([3, 3, 4, 4, 5, 6, 8]), rng.choice([0, 0, 1, 1, 2, 3, 4, 5])
    uniform, copies, stores = rng.random() < 0.4, rng.choice([0, 0, 0.5, 1]), rng.choice([0, 0.25, 0.7])
    nodes = [{"id": n, "kind": "gpu", "name": f"g{n}"} for n in range(gpus)]
    for n in range(gpus, gpus + switches):
        nodes.append({"id": n, "kind": "switch", "name": f"s{n}", "multicast": rng.random() < copies, "reduce": rng.random() < 0.3})
        if rng.random() < stores:
            nodes[-1] |= {"forwarding": "store_and_forward", "buffer_bytes": rng.choice([0, 0, 1e3, 1e6])}
    bandwidths, latencies = [12.5, 25, 50, 75, 100], [0, 0.35, 0.5, 0.7, 1, 2.6]
    usual = (rng.choice(bandwidths), rng.choice(latencies))
    message_us, changes = rng.choice([0, 0, 0, 0.5, 2]), rng.random() < 0.05
    links = []

    def link(a, b, both_ways=True):
        for src, dst in ((a, b), (b, a))[:2 if both_ways else 1]:
            bandwidth, latency = usual if uniform else (rng.choice(bandwidths), rng.choice(latencies))
            links.append({"id": len(links), "src": src, "dst": dst, "bandwidth_GBps": bandwidth, "latency_us": latency})
            if message_us and rng.random() < 0.8:
                links[-1]["message_us"] = message_us
            if changes and rng.random() < 0.3:
                times = sorted(rng.sample([2, 5, 10, 40, 100, 1000], 2))
                links[-1]["bandwidth_steps"] = [{"from_us": 0, "GBps": bandwidth}, {"from_us": times[0], "GBps": rng.choice([0, 10])},
                                                {"from_us": times[1], "GBps": bandwidth}]

    if switches:
        for g in range(gpus):
            for s in rng.sample(range(gpus, gpus + switches), rng.randint(1, min(2, switches))):
                link(g, s)
        for s in range(gpus + 1, gpus + switches):
            for other in rng.sample(range(gpus, s), rng.randint(1, min(2, s - gpus))):
                link(s, other)
    else:
        for g in range(1, gpus):
            link(g, rng.randrange(g))
    for _ in range(rng.randint(0, gpus // (2 if switches else 1))):
        link(*rng.sample(range(gpus), 2), both_ways=rng.random() < 0.7)
    topology = {"format": "rondo-topology", "version": 2, "name": "random", "source": "random", "nodes": nodes, "links": links}
    if rng.random() < 0.15:
        group = sorted(rng.sample(range(len(links)), 2))
        topology["shared_bandwidth"] = [{"name": "shared", "links": group,
                                         "bandwidth_GBps": max(links[l]["bandwidth_GBps"] for l in group)}]
    return topology, gpus


def custom_demand(rng, gpus, size):
    """One to four data or sums, of few or many GPUs for few or many, some of them late."""
    chunks = []
    for i in range(rng.randint(1, 4)):
        reduce = rng.random() < 0.4
        sources = rng.sample(range(gpus), rng.randint(2, gpus) if reduce else 1)
        others = [g for g in range(gpus) if reduce or g not in sources]
        chunks.append({"id": i, "bytes": size / rng.choice([1, 2, 3]), "sources": sources, "reduce": reduce,
                       "destinations": rng.sample(others, rng.randint(1, len(others)))})
        if rng.random() < 0.3:
            chunks[-1]["ready_us"] = [rng.choice([0, 1, 20]) for _ in sources]
    return {"format": "rondo-demand", "version": 2, "chunks": chunks}


def problem(rng):
    """The texts of its files by their names, and the options of `rondo solve`, which name them."""
    topology, gpus = fabric(rng)
    collective, size = rng.choice(COLLECTIVES), rng.choice(list(SIZES))
    files = {"fabric.json": json.dumps(topology)}
    options = ["--topology", "fabric.json", "--collective", collective, "--seed", str(rng.randint(1, 9))]
    members = list(range(gpus))
    if collective == "custom":
        files["demand.json"] = json.dumps(custom_demand(rng, gpus, SIZES[size]))
        options += ["--demand", "demand.json"]
    else:
        if gpus > 3 and rng.random() < 0.2:
            members = sorted(rng.sample(members, rng.randint(2, gpus - 1)))
            options += ["--group", ",".join(map(str, members))] + rng.choice([[], ["--relay", "none"]])
        if collective in WITH_COUNTS and rng.random() < 0.15:
            counts = [int(SIZES[size])] + [rng.choice([0, 1, 2, 5]) * int(SIZES[size] / 5) for _ in members[1:]]
            if collective == "alltoall":
                counts = [rng.sample(counts, len(counts)) for _ in members]
            files["counts.json"] = json.dumps(counts)
            options += ["--counts", "counts.json"]
        else:
            options += ["--size", size]
        if collective in ROOTED:
            options += ["--root", str(rng.choice(members))]
        if rng.random() < 0.1:
            options += ["--ready", f"{rng.choice(members)}:{rng.choice([1, 20, 300])}"]
    if rng.random() < 0.3:
        options += ["--engine", "list", "--policy", rng.choice(["rarest", "furthest", "soonest", "rarest-joined", "soonest-fitting"])]
    if rng.random() < 0.8:
        parts = len(members) if collective == "allreduce" else 1  # one of each chunk is summed up at each member
        options += ["--chunks", str(parts * rng.choice([1, 2, 4]))]
    return files, options + ["--improve-work", rng.choice(["0", "1e5"])]


class Judge:
    def __init__(self, rondo, folder):
        self.rondo, self.folder = pathlib.Path(rondo).resolve(), pathlib.Path(folder)

    def run(self, *arguments):
        done = subprocess.run([self.rondo, *arguments], capture_output=True, text=True, cwd=self.folder)
        return done.returncode, (done.stdout + done.stderr)[-600:]

    def finding(self, files, options):
        """What is wrong, or an empty text; and the kind of the certificate, or why there is none."""
        for name, text in files.items():
            (self.folder / name).write_text(text)
        code, said = self.run("solve", *options, "--output", "run", "--force")
        if code == NO_ENGINE or NO_WAY in said:
            return "", "refused"
        if code:
            return f"solve: exit code {code}: {said}", "fault"
        report = json.loads((self.folder / "run" / "report.json").read_text())
        kind = report["lower_bound_kind"]
        faults = [remark for remark in report["remarks"] if "fault of Rondo" in remark]
        if faults:
            return f"remark: {faults[0]}", kind
        for command in (["export", "run", "--format", "json", "--output", "schedule.json"], ["verify", "schedule.json"]):
            code, said = self.run(*command)
            if code:
                return f"{command[0]}: exit code {code}: {said}", kind
        try:
            finish = replay.verify(self.folder / "schedule.json")
        except Invalid as error:
            return f"reference replay: {error}", kind
        if not equal(finish, report["finish_us"]):
            return f"reference replay ends at {finish} us, the report at {report['finish_us']}", kind
        return "", kind


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rondo", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first fabric")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--only", help="this collective alone")
    parser.add_argument("--keep", default=".", type=pathlib.Path)
    arguments = parser.parse_args()
    begun, findings, kinds = time.monotonic(), 0, collections.Counter()
    for case in range(arguments.first, arguments.first + arguments.count):
        if time.monotonic() - begun > arguments.seconds:
            break
        files, options = problem(random.Random(arguments.seed * 1_000_003 + case))
        if arguments.only not in (None, options[options.index("--collective") + 1]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            why, kind = Judge(arguments.rondo, folder).finding(files, options)
        kinds[kind] += 1
        if why:
            findings += 1
            kept = arguments.keep / f"fabric-{arguments.seed}-{case}"
            kept.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (kept / name).write_text(text)
            print(f"cd {kept}; rondo solve {shlex.join(options)} --output run\n    {why}", flush=True)
    print(f"{sum(kinds.values())} fabrics, {findings} findings; {json.dumps(kinds)}; {time.monotonic() - begun:.0f} s")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
