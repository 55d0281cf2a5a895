#!/usr/bin/env python3
"""Benchmark `simgrid`: schedules of Rondo in SimGrid's network model, by their dependencies alone.

For each case: `rondo solve`, `rondo export --format json`; the links and transfers of that file, without its times, go to
benchmarks/simgrid/simulate.cpp (Debian: libsimgrid-dev), once with the order of transfers on each link kept, once without.
Beside it MPI's own collective on the same links under SMPI (mpi_collectives.cpp), one process a GPU, as Open MPI and as
MPICH choose algorithms; messages take the fastest path for their bytes and pass other GPUs as they pass switches.
--json FILE: where the results go. --only SUBSTRING: these cases alone.
"""

import argparse
import heapq
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RONDO = ROOT / "build/release/rondo"
# Flows share links fairly and get all of them: the fluid model without TCP's window, weights and cross traffic.
CONFIG = ["network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1", "network/TCP-gamma:0",
          "network/weight-S:0", "network/crosstraffic:0", "surf/precision:1e-12", "contexts/stack-size:64"]
CASES = [("dgx1", "allgather", "1GB"), ("ndv2-2", "allgather", "1GB"), ("ndv2-2", "alltoall", "256MB"),
         ("ndv2-4", "allgather", "256MB"), ("torus:dims=4x4", "allgather", "64MB"),
         ("mesh:dims=4x4", "allreduce", "64MB"), ("rails:boxes=2,rails=4", "allgather", "256MB"),
         ("fat_tree:leaves=4,gpus=4", "alltoall", "64MB"), ("dragonfly", "alltoall", "64MB"),
         ("hypercube:dimensions=4", "reducescatter", "64MB"), ("amd-2", "allgather", "1GB"),
         ("dgx2-2", "alltoall", "64MB"), ("ndv2-2-messages", "allgather", "16MB"), ("ndv2-2", "allgather", "1MB")]
NEAR = 1e-6
BYTES = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
SELECTORS = ["ompi", "mpich"]
# Only links take time.
MPI_CONFIG = [c for c in CONFIG if not c.startswith("contexts")] + [
    "smpi/simulate-computation:no", "smpi/wtime:0", "smpi/iprobe:0", "smpi/test:0", "smpi/display-timing:no"]


def transfers_of(schedule):
    """Lists of sends (as indices) that move as one: of one number, or joined by cut-through switches (FORMATS 3)."""
    nodes, links, sends = schedule["topology"]["nodes"], schedule["topology"]["links"], schedule["sends"]
    count = len(sends["chunk"])
    numbers = sends.get("transfer", [-1] * count)

    def passes(node):
        return nodes[node]["kind"] == "switch" and nodes[node].get("forwarding", "cut_through") == "cut_through"

    numbered, roots, onward = {}, [], {}
    for s in range(count):
        if numbers[s] >= 0:
            numbered.setdefault(numbers[s], []).append(s)
        elif passes(links[sends["link"][s]]["src"]):
            onward.setdefault((sends["chunk"][s], links[sends["link"][s]]["src"]), []).append(s)
        else:
            roots.append(s)
    transfers = list(numbered.values())
    used = set()
    for root in sorted(roots, key=lambda s: sends["start_us"][s]):
        members = [root]
        for s in members:
            link = links[sends["link"][s]]
            if not passes(link["dst"]):
                continue
            leaves = sends["start_us"][s] + link.get("latency_us", 0)
            found = [o for o in onward.get((sends["chunk"][s], link["dst"]), [])
                     if o not in used and abs(sends["start_us"][o] - leaves) < NEAR + 1e-9 * leaves]
            if not nodes[link["dst"]].get("multicast", True):
                found = found[:1]
            used.update(found)
            members += found
        transfers.append(members)
    return transfers


def write_input(schedule, path):
    nodes, links, sends = schedule["topology"]["nodes"], schedule["topology"]["links"], schedule["sends"]
    groups = schedule["topology"].get("shared_bandwidth", [])
    sizes, transfers = schedule["chunk_bytes"], transfers_of(schedule)
    rates = sends.get("rate_GBps", [None] * len(sends["chunk"]))

    def holds(node):
        return nodes[node]["kind"] == "gpu" or nodes[node].get("forwarding") == "store_and_forward"

    arrivals, by_place, lines = 0, {}, []
    made, on_link = [], {}
    for number, members in enumerate(transfers):
        # How far behind its first byte a link is; switches that add have several links in.
        behind, first = {}, min(sends["start_us"][s] for s in members)
        for s in sorted(members, key=lambda s: sends["start_us"][s]):
            link = links[sends["link"][s]]
            behind[s] = 0.0 if holds(link["src"]) else max(
                behind[o] + links[sends["link"][o]].get("latency_us", 0) for o in behind
                if links[sends["link"][o]]["dst"] == link["src"])
        ends = []
        for s in members:
            link = links[sends["link"][s]]
            on_link.setdefault(sends["link"][s], []).append((sends["start_us"][s], sends["end_us"][s], number, behind[s]))
            if holds(link["dst"]):
                ends.append((arrivals, behind[s] + link.get("latency_us", 0)))
                by_place.setdefault((sends["chunk"][s], link["dst"]), []).append((sends["arrival_us"][s], arrivals))
                arrivals += 1
        made.append({"first": first, "ends": ends, "before": {}})
    for uses in on_link.values():
        uses.sort()
        for k, (start, _, number, behind) in enumerate(uses):
            done = [u for u in uses[:k] if u[1] <= start + NEAR + 1e-9 * start and u[2] != number]
            # Those that no other of them waits for.
            last = max((u[0] for u in done), default=0)
            for _, end, other, its in done:
                if end > last + NEAR:
                    before = made[number]["before"]
                    before[other] = max(before.get(other, 0.0), its - behind)
    for members, transfer in zip(transfers, made):
        needs, chunks = set(), {sends["chunk"][s] for s in members}
        for s in members:
            place = (sends["chunk"][s], links[sends["link"][s]]["src"])
            at = sends["start_us"][s]
            known = [a for a in by_place.get(place, []) if a[0] <= at + NEAR + 1e-9 * at]
            if not holds(place[1]) or not known:
                continue
            sums = any(schedule["chunks"].get("reduce", [0])) and schedule["chunks"]["reduce"][place[0]]
            needs.update(a for _, a in known) if sums else needs.add(min(known)[1])
        rate = next((rates[s] for s in members if rates[s] is not None), 0)
        byte_count = sum(sizes[c] if isinstance(sizes, list) else sizes for c in chunks)
        cost = max(links[sends["link"][s]].get("message_us", 0) for s in members)
        used = sorted({sends["link"][s] for s in members})  # several chunks together are several sends on a link
        used += [len(links) + g for g, group in enumerate(groups) if any(l in group["links"] for l in used)]
        listed = [(used, "{}"), (sorted(needs), "{}"), (list(transfer["before"].items()), "{0[0]} {0[1]:.9g}"),
                  (transfer["ends"], "{0[0]} {0[1]:.9g}")]
        lines.append(f"{byte_count:.3f} {cost} {rate} " +
                     " ".join(" ".join([str(len(values)), *(form.format(v) for v in values)]) for values, form in listed))
    bandwidths = [link["bandwidth_GBps"] for link in links] + [g["bandwidth_GBps"] for g in groups]
    path.write_text(f"{len(bandwidths)} {' '.join(map(str, bandwidths))}\n{len(lines)}\n" + "\n".join(lines) + "\n")
    return len(lines)


def paths(topology, byte_count):
    """For each pair of GPUs the links of the fastest path for one message: latencies, and bytes at the slowest link."""
    nodes, links = topology["nodes"], topology["links"]
    onward = {}
    for index, link in enumerate(links):
        onward.setdefault(link["src"], []).append(index)
    gpus = [n for n, node in enumerate(nodes) if node["kind"] == "gpu"]
    found = {}
    for src in gpus:
        best = {}  # by destination; one Dijkstra for each least bandwidth that a path may have
        for least in sorted({link["bandwidth_GBps"] for link in links}):
            reached, queue = {src: (0.0, 0, [])}, [(0.0, 0, src)]
            while queue:
                latency, hops, node = heapq.heappop(queue)
                if (latency, hops) > reached[node][:2]:
                    continue
                for index in onward.get(node, []):
                    link = links[index]
                    if link["bandwidth_GBps"] < least:
                        continue
                    there = (latency + link.get("latency_us", 0), hops + 1)
                    if link["dst"] not in reached or there < reached[link["dst"]][:2]:
                        reached[link["dst"]] = (*there, reached[node][2] + [index])
                        heapq.heappush(queue, (*there, link["dst"]))
            for dst in gpus:
                if dst in reached and dst != src:
                    time = reached[dst][0] + byte_count / least * 1e-3
                    if dst not in best or time < best[dst][0]:
                        best[dst] = (time, reached[dst][2])
        found.update({(src, dst): path for dst, (_, path) in best.items()})
    return gpus, found


def run_mpi(program, schedule, collective, byte_count, folder):
    """Simulated microseconds of MPI's own collective for each way to choose its algorithm."""
    topology = schedule["topology"]
    if any(link.get("message_us", 0) for link in topology["links"]):
        return {}  # SMPI charges messages to processes, not to links
    links, groups = topology["links"], topology.get("shared_bandwidth", [])
    gpus, routes = paths(topology, byte_count / len([n for n in topology["nodes"] if n["kind"] == "gpu"]))
    lines = ['<?xml version="1.0"?>', '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
             '<platform version="4.1">', '<zone id="all" routing="Full">']
    lines += [f'<host id="h{g}" speed="1Gf"/>' for g in gpus]
    bandwidths = [(l["bandwidth_GBps"], l.get("latency_us", 0)) for l in links] + [(g["bandwidth_GBps"], 0) for g in groups]
    lines += [f'<link id="l{i}" bandwidth="{b * 1e9:.0f}Bps" latency="{l * 1e-6:.12f}s" sharing_policy="SHARED"/>'
              for i, (b, l) in enumerate(bandwidths)]
    for (src, dst), path in routes.items():
        used = path + [len(links) + g for g, group in enumerate(groups) if any(l in group["links"] for l in path)]
        inner = "".join(f'<link_ctn id="l{i}"/>' for i in used)
        lines.append(f'<route src="h{src}" dst="h{dst}" symmetrical="NO">{inner}</route>')
    xml, hosts = folder / "platform.xml", folder / "hosts"
    xml.write_text("\n".join(lines + ["</zone>", "</platform>", ""]))
    hosts.write_text("".join(f"h{g}\n" for g in gpus))
    taken = {}
    for selector in SELECTORS:
        said = subprocess.run(["smpirun", "-np", str(len(gpus)), "-platform", str(xml), "-hostfile", str(hosts),
                               *[f"--cfg={c}" for c in MPI_CONFIG], f"--cfg=smpi/coll-selector:{selector}",
                               "--log=root.thres:critical", str(program), collective, str(byte_count)],
                              capture_output=True, text=True)
        taken[selector] = float(said.stdout) if said.returncode == 0 else None
        if said.returncode != 0:
            print(said.stderr[-400:])
    return taken


def build(folder):
    program = folder / "simulate"
    subprocess.run(["c++", "-std=c++20", "-O2", str(ROOT / "benchmarks/simgrid/simulate.cpp"), "-lsimgrid", "-o",
                    str(program)], check=True)
    subprocess.run(["smpicxx", "-O2", str(ROOT / "benchmarks/simgrid/mpi_collectives.cpp"), "-o", str(folder / "mpi")],
                   check=True)
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", default=str(ROOT / "benchmarks/results/simgrid.json"))
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = build(folder)
        for fabric, collective, size in CASES:
            if options.only not in f"{fabric} {collective} {size}":
                continue
            row = {"fabric": fabric, "collective": collective, "size": size}
            run, exported, text = folder / "run", folder / "schedule.json", folder / "transfers.txt"
            command = [str(RONDO), "solve", "--topology", fabric, "--collective", collective, "--size", size, "--gap",
                       "5%", "--output", str(run), "--force"]
            row["command"] = " ".join(["rondo", *command[1:-3]])
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                subprocess.run([str(RONDO), "export", str(run), "--format", "json", "--output", str(exported)],
                               check=True, capture_output=True)
                schedule = json.loads(exported.read_text())
                row["transfers"], row["finish_us"] = write_input(schedule, text), schedule["finish_us"]
                for way in ("order", "free"):
                    said = subprocess.run([str(program), str(text), way, *[f"--cfg={c}" for c in CONFIG],
                                           "--log=root.thres:critical"], capture_output=True, text=True)
                    row[way] = float(said.stdout) if said.returncode == 0 else None
                    if said.returncode != 0:
                        print(said.stderr[-400:])
                row["mpi"] = run_mpi(folder / "mpi", schedule, collective, int(float(size[:-2])) * BYTES[size[-2:]], folder)
            else:
                print(done.stderr)
            print(row, flush=True)
            rows.append(row)
    pathlib.Path(options.json).write_text(json.dumps(
        {"benchmark": "simgrid", "commit": commit.stdout.strip(), "config": CONFIG, "mpi_config": MPI_CONFIG, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
