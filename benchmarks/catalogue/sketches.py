#!/usr/bin/env python3
"""benchmarks/run.sh sketches [--only SUBSTRING] [--json FILE] [--rondo FILE] [--ranks N]

TuCCL's sketches (its stages of binding, grouping and transformation) for cells of several fabrics, beside engine auto on the
whole fabric. Each GPU is bound to the NIC that is nearest to it; NICs of a node, one for each group across the nodes, are
chosen greedily so that the bandwidth of a group varies least (as nodes are alike: the same NICs of every node), 1, 2, 4, ...
of them; a group's GPUs send to their own group, to the next one, or all groups to all. Sketches that leave all pairs of GPUs
that there were, or say the same as another one, are left out; so are those whose lower bound is not before the end of the
schedule of auto. The rest are tried by auto on the links that they leave.
"""
import argparse
import collections
import heapq
import json
import pathlib
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FABRICS = ["ndv2-2", "dgx1v x 2, rails", "rails:boxes=2", "dgx-h100 x 2, fat_tree", "amd-2", "dgx2-2"]
COLLECTIVES = ["allgather", "alltoall", "allreduce"]
SIZES = ["16KB", "1MB", "64MB"]
NEAR = 0.01  # auto ends that near to its bound: nothing to gain


def ways_out(topology):
    """Of each GPU of the first node that reaches GPUs of others over switches alone: us to the nearest of them, GB/s of the
    narrowest link there, the NIC (the link by which it leaves the node), and the GPUs that it reaches, the nearest first."""
    nodes = {node["id"]: node for node in topology["nodes"]}
    links = collections.defaultdict(list)
    for link in topology["links"]:
        links[link["src"]].append(link)
    found = {}
    for gpu in (n for n in topology["nodes"] if n["kind"] == "gpu" and n.get("chassis") == 0):
        queue, seen, reached = [(0.0, 0, gpu["id"], float("inf"), None)], set(), []
        count = 0
        while queue:
            us, _, at, least, nic = heapq.heappop(queue)
            if at in seen:
                continue
            seen.add(at)
            if nodes[at]["kind"] == "gpu" and at != gpu["id"]:
                if nodes[at].get("chassis") != 0:
                    reached.append((us, at, least, nic))
                continue
            for link in links[at]:
                count += 1
                leaves = nodes[link["dst"]].get("chassis") != 0
                heapq.heappush(queue, (us + link["latency_us"], count, link["dst"], min(least, link["bandwidth_GBps"]),
                                       link["id"] if nic is None and leaves else nic))
        if reached:
            us, _, least, nic = min(reached)
            found[gpu["id"]] = us, least, nic, [at for _, at, _, _ in sorted(reached)]
    return found


def candidates(topology):
    """Named sketches: which GPUs send to which GPUs of other nodes."""
    chassis = {n["id"]: n.get("chassis") for n in topology["nodes"] if n["kind"] == "gpu"}
    nodes = len(set(chassis.values()))
    first = {node: min(g for g in chassis if chassis[g] == node) for node in chassis.values()}
    local = {gpu: gpu - first[node] for gpu, node in chassis.items()}
    out = ways_out(topology)
    reaches = {local[gpu]: [local[other] for other in others] for gpu, (_, _, _, others) in out.items()}
    receiver = {s: s if s in others else others[0] for s, others in reaches.items()}
    by_nic = collections.defaultdict(list)
    for gpu, (us, bandwidth, nic, _) in out.items():
        by_nic[nic].append((us, -bandwidth, local[gpu]))
    nics = sorted((min(users) for users in by_nic.values()), key=lambda best: best[2])
    found = {}

    def offer(name, conn):
        if all(other in reaches[s] for s, others in conn.items() for other in others):
            found[name] = {str(s): sorted(set(others)) for s, others in conn.items()}

    count = 1
    while count <= len(nics):
        # Greedily the NIC whose bandwidth differs least from those that are taken, the widest first; evenly spread among equals.
        width = [-nic[1] for nic in nics]
        order = sorted(range(len(nics)), key=lambda i: -width[i])
        alike = [i for i in order if width[i] == width[order[0]]]
        taken = sorted(alike)[::len(alike) // count][:count] if len(alike) >= count else order[:count]
        senders = [nics[i][2] for i in taken]
        offer(f"{count} NICs, own group", {s: [receiver[s]] for s in senders})
        offer(f"{count} NICs, next group", {s: [receiver[senders[(i + 1) % count]]] for i, s in enumerate(senders)})
        offer(f"{count} NICs, all to all", {s: [receiver[other] for other in senders] for s in senders})
        if count == 1:  # as TACCL does on an NDv2: one GPU sends, another one receives
            others = [s for s in reaches if s != senders[0]]
            if others:
                offer("1 NIC, one sends, one receives", {senders[0]: others[:1]})
        count = count * 2 if count == len(nics) or 2 * count <= len(nics) else len(nics)
    offer("all GPUs, own group", {s: [receiver[s]] for s in reaches})
    unique = {}
    for name, conn in found.items():
        if conn not in unique.values():
            unique[name] = conn
    return {name: {"nnodes": nodes, "intranode_sketch": {"strategy": "none"},
                   "internode_sketch": {"strategy": "relay", "internode_conn": conn},
                   "symmetry_offsets": [], "hyperparameters": {"input_chunkup": 1}} for name, conn in unique.items()}


class Trial:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.runs = 0

    def rondo(self, *arguments, ranks=1):
        command = [str(self.options.rondo), *arguments]
        if ranks > 1:
            command = ["mpirun", "-n", str(ranks), *command]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def topology(self, fabric):
        """A file: of a name, a generator, or a machine with a network."""
        path = self.scratch / (re.sub(r"\W+", "-", fabric) + ".json")
        composed = re.fullmatch(r"(\S+) x (\d+), (\S+)", fabric)
        if composed:
            made = self.rondo("topology", "compose", "--node", composed[1], "--nodes", composed[2], "--network", composed[3],
                              "--output", str(path))
        elif ":" in fabric:
            made = self.rondo("topology", "generate", fabric, "--output", str(path))
        else:
            return ROOT / f"jobs/topologies/{fabric}.json"
        made.check_returncode()
        return path

    def solve(self, problem, *more):
        self.runs += 1
        folder = self.scratch / f"run-{self.runs}"
        done = self.rondo("solve", *problem, *more, "--output", str(folder), ranks=self.options.ranks)
        if done.returncode != 0:
            return None, done.stderr.strip().splitlines()[-1:]
        return json.loads((folder / "report.json").read_text()), None

    def bound_us(self, problem, sketch):
        """Of what the sketch leaves, to the digits that are printed."""
        done = self.rondo("sketch", "check", *problem, "--sketch", str(sketch))
        found = re.search(r"ends before (\S+) (us|ms|s) with it", done.stdout)
        return float(found[1]) * {"us": 1, "ms": 1e3, "s": 1e6}[found[2]] if found else None

    def leaves_all(self, path, sketch):
        done = self.rondo("sketch", "check", "--topology", str(path), "--sketch", str(sketch), "--collective", "allgather",
                          "--size", "1MB")
        if done.returncode != 0:
            return None
        left = re.search(r"(\d+) of (\d+) pairs.* (\d+) of (\d+) between", done.stdout.replace("\n", " "))
        return left[1] == left[2] and left[3] == left[4]

    def cell(self, fabric, path, sketches, collective, size):
        problem = ["--topology", str(path), "--collective", collective, "--size", size]
        report, why = self.solve(problem)
        row = {"fabric": fabric, "collective": collective, "size": size, "auto_us": report["finish_us"], "gap": report["gap"],
               "generated": len(sketches), "pruned": 0, "tried": 0, "refused": 0, "best": None, "best_us": None}
        if report["gap"] <= NEAR:
            row["pruned"] = len(sketches)
            return row
        for name, sketch in sketches.items():
            bound = self.bound_us(problem, sketch)
            if bound is not None and bound * (1 - 5e-3) >= report["finish_us"]:
                row["pruned"] += 1
                continue
            found, why = self.solve(problem, "--sketch", str(sketch), "--sketch-parts", "links")
            if found is None:
                row["refused"] += 1
                row["why"] = why
                continue
            row["tried"] += 1
            if row["best"] is None or found["finish_us"] < row["best_us"]:
                row["best"], row["best_us"] = name, found["finish_us"]
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "benchmarks/results/sketches.json")
    parser.add_argument("--rondo", type=pathlib.Path, default=ROOT / "build/release/rondo")
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    rows = json.loads(options.json.read_text())["rows"] if options.json.exists() else []
    for fabric in FABRICS:
        if options.only not in fabric:
            continue
        with tempfile.TemporaryDirectory(prefix="rondo-sketches-") as scratch:
            trial = Trial(options, pathlib.Path(scratch))
            path = trial.topology(fabric)
            sketches = {}
            for number, (name, sketch) in enumerate(candidates(json.loads(path.read_text())).items()):
                file = pathlib.Path(scratch) / f"sketch-{number}.json"
                file.write_text(json.dumps(sketch))
                print(fabric, name, sketch["internode_sketch"]["internode_conn"], flush=True)
                if trial.leaves_all(path, file) is False:
                    sketches[name] = file
            for collective in COLLECTIVES:
                for size in SIZES:
                    began = time.monotonic()
                    row = trial.cell(fabric, path, sketches, collective, size)
                    row["wall_s"] = time.monotonic() - began
                    print(json.dumps(row), flush=True)
                    key = ("fabric", "collective", "size")
                    rows = [other for other in rows if any(other[k] != row[k] for k in key)] + [row]
                    options.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
