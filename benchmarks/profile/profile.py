#!/usr/bin/env python3
"""Benchmark `profile`: the profiler on four simulated platforms whose figures are known.

Builds benchmarks/profile/smpi_profile.cpp with SimGrid's SMPI (Debian: libsimgrid-dev), runs it with smpirun, and
compares every figure that it finds with the platform's. Then `rondo solve` and `rondo compare` run on the topology that was
measured and on the one that is true: finish and gap of both, and the gains over the best known algorithm. --json FILE: where the results go. --defaults: also with the
factors and limits of SimGrid's default network model, whose links are not worth what the platform says.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RONDO = ROOT / "build/release/rondo"
MESSAGE_US = 0.8
SIZE = "16MB"
# Links are worth what the platform says: no factors on bandwidth and latency, no window of TCP, no share by round-trip
# time, no traffic of acknowledgements; computation takes no time, and handing over a message takes MESSAGE_US.
PLAIN = ["network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1", "network/TCP-gamma:0",
         "network/weight-S:0", "network/crosstraffic:0"]
ALWAYS = ["smpi/simulate-computation:no", f"smpi/ois:0:{MESSAGE_US * 1e-6}:0", "smpi/wtime:0",
          "smpi/send-is-detached-thresh:65536"]


class Platform:
    """Hosts 0..n-1, links by name, a route for every ordered pair."""

    def __init__(self, name, hosts):
        self.name, self.hosts, self.links, self.routes = name, hosts, {}, {}

    def link(self, name, GBps, latency_us):
        self.links[name] = (GBps, latency_us)
        return name

    def xml(self):
        lines = ['<?xml version="1.0"?>',
                 '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">', '<platform version="4.1">',
                 '<zone id="all" routing="Full">']
        lines += [f'<host id="h{h}" speed="1Gf"/>' for h in range(self.hosts)]
        lines += [f'<link id="{n}" bandwidth="{b * 1e9:.0f}Bps" latency="{l * 1e-6:.9f}s" sharing_policy="SHARED"/>'
                  for n, (b, l) in self.links.items()]
        for (a, b), links in self.routes.items():
            inner = "".join(f'<link_ctn id="{n}"/>' for n in links)
            lines.append(f'<route src="h{a}" dst="h{b}" symmetrical="NO">{inner}</route>')
        return "\n".join(lines + ["</zone>", "</platform>", ""])

    def figures(self, pair):
        links = [self.links[n] for n in self.routes[pair]]
        return sum(l for _, l in links), min(b for b, _ in links)

    def sharing(self):
        """Sets of pairs, and what they have together, that bind: one link carries them all, and is less than their sum."""
        found = {}
        for name, (GBps, _) in self.links.items():
            pairs = frozenset(p for p, links in self.routes.items() if name in links)
            # Ports that send and receive: at most one flow a port at its rate is asked of a trunk.
            if len(pairs) > 1 and self.at_once(pairs) > 1.001 * GBps:
                found[pairs] = min(GBps, found.get(pairs, GBps))
        return found

    def topology(self):
        """What `rondo profile` should write: a link for each pair, and what pairs share."""
        pairs = sorted(self.routes)
        links = [{"id": i, "src": a, "dst": b, "bandwidth_GBps": self.figures((a, b))[1],
                  "latency_us": self.figures((a, b))[0], "message_us": MESSAGE_US} for i, (a, b) in enumerate(pairs)]
        groups = [{"links": [pairs.index(p) for p in sorted(shared)], "bandwidth_GBps": GBps}
                  for shared, GBps in self.sharing().items()]
        return {"format": "rondo-topology", "version": 2, "name": self.name,
                "nodes": [{"id": h, "kind": "gpu"} for h in range(self.hosts)], "links": links, "shared_bandwidth": groups}

    def at_once(self, pairs):
        """What other links would let these pairs have (each other link once)."""
        total, used = 0.0, {}
        for p in pairs:
            rate = self.figures(p)[1]
            total += rate
        return total


def pairs_of(n):
    return [(a, b) for a in range(n) for b in range(n) if a != b]


def flat():
    p = Platform("flat", 8)
    for h in range(8):
        p.link(f"up{h}", 12.5, 0.9)
        p.link(f"down{h}", 12.5, 0.9)
    p.routes = {(a, b): [f"up{a}", f"down{b}"] for a, b in pairs_of(8)}
    return p


def two_level():
    """Two boxes of 4: ports of 40 GB/s inside, a card of 10 GB/s each, 25 GB/s between the boxes each way."""
    p = Platform("two-level", 8)
    for h in range(8):
        for way in ("out", "in"):
            p.link(f"{way}{h}", 40, 0.35)
            p.link(f"nic_{way}{h}", 10, 1.1)
    for box in range(2):
        p.link(f"trunk{box}", 25, 1.3)
    p.routes = {(a, b): [f"out{a}", f"in{b}"] if a // 4 == b // 4 else
                [f"nic_out{a}", f"trunk{a // 4}", f"nic_in{b}"] for a, b in pairs_of(8)}
    return p


def shared_nic():
    """Two boxes of 4: a link of 50 GB/s for each pair inside; every two GPUs share a card of 12.5 GB/s."""
    p = Platform("shared-nic", 8)
    for a, b in pairs_of(8):
        if a // 4 == b // 4:
            p.link(f"nv{a}_{b}", 50, 0.7)
    for card in range(4):
        p.link(f"card_out{card}", 12.5, 1.0)
        p.link(f"card_in{card}", 12.5, 1.0)
    p.routes = {(a, b): [f"nv{a}_{b}"] if a // 4 == b // 4 else [f"card_out{a // 2}", f"card_in{b // 2}"]
                for a, b in pairs_of(8)}
    return p


def slow_link():
    """Six GPUs, a link for each pair; 1 to 4 has a quarter of the bandwidth, 3 to 0 and back take three times as long."""
    p = Platform("slow-link", 6)
    for a, b in pairs_of(6):
        p.link(f"l{a}_{b}", 5 if (a, b) == (1, 4) else 20, 4.5 if {a, b} == {0, 3} else 1.5)
    p.routes = {(a, b): [f"l{a}_{b}"] for a, b in pairs_of(6)}
    return p


def build():
    """Only what has changed since is compiled; build/smpi keeps the objects."""
    folder = ROOT / "build/smpi"
    folder.mkdir(parents=True, exist_ok=True)
    sources = [ROOT / "benchmarks/profile/smpi_profile.cpp", *sorted((ROOT / "src/profile").glob("*.cpp"))]
    sources += [ROOT / f for f in ("src/parallel/mpi_communicator.cpp", "src/core/topology.cpp", "src/core/units.cpp",
                                   "src/graph/digraph.cpp", "io/topology_json.cpp", "io/json_object.cpp",
                                   "io/json_text.cpp", "io/format_version.cpp")]
    headers = max(h.stat().st_mtime for d in ("include/rondo/profile", "include/rondo/core", "src/profile")
                  for h in (ROOT / d).glob("*.hpp"))
    objects = []
    for source in sources:
        objects.append(folder / f"{source.parent.name}-{source.stem}.o")
        if objects[-1].exists() and objects[-1].stat().st_mtime > max(headers, source.stat().st_mtime):
            continue
        # What the program does not call is left out, and with it what that would need.
        sections = ["-ffunction-sections", "-fdata-sections"]
        if source.stem != "smpi_profile":
            sections.append("-fvisibility=hidden")
        # LEMON does not compile as C++20.
        standard = "-std=c++17" if source.parent.name == "graph" else "-std=c++20"
        subprocess.run(["smpicxx", standard, "-O1", "-fPIC", *sections, "-DFMT_HEADER_ONLY", f"-I{ROOT}/include",
                        f"-I{ROOT}/src/core", f"-I{ROOT}/io", "-c", str(source), "-o", str(objects[-1])], check=True)
    program = folder / "smpi_profile"
    subprocess.run(["smpicxx", *map(str, objects), "-Wl,--gc-sections", "-o", str(program)], check=True)
    return program


def run(program, platform, folder, config):
    xml, hosts = folder / f"{platform.name}.xml", folder / "hosts"
    xml.write_text(platform.xml())
    hosts.write_text("".join(f"h{h}\n" for h in range(platform.hosts)))
    topology, figures = folder / f"{platform.name}.json", folder / f"{platform.name}.tsv"
    begin = time.time()
    done = subprocess.run(["smpirun", "-np", str(platform.hosts), "-platform", str(xml), "-hostfile", str(hosts),
                           *[f"--cfg={c}" for c in ALWAYS + config], "--log=root.thres:critical", str(program),
                           str(topology), str(figures)], capture_output=True, text=True)
    if done.returncode != 0 or not topology.exists():
        sys.exit(f"{platform.name}: {done.stdout}{done.stderr}")
    return json.loads(topology.read_text()), done.stdout, time.time() - begin


def off(found, true):
    return abs(found - true) / true


def compare(platform, topology):
    """Worst relative error of each figure, and which groups are missing, spurious or wrong."""
    worst = {"latency": 0.0, "message": 0.0, "bandwidth": 0.0, "group": 0.0}
    links = {}
    for link in topology["links"]:
        pair = (link["src"], link["dst"])
        links[link["id"]] = pair
        latency, GBps = platform.figures(pair)
        worst["latency"] = max(worst["latency"], off(link["latency_us"], latency))
        worst["message"] = max(worst["message"], off(link.get("message_us", 0), MESSAGE_US))
        worst["bandwidth"] = max(worst["bandwidth"], off(link["bandwidth_GBps"], GBps))
    found = {}
    for group in topology.get("shared_bandwidth", []):
        found[frozenset(links[l] for l in group["links"])] = group["bandwidth_GBps"]
    true = platform.sharing()
    for pairs in true.keys() & found.keys():
        worst["group"] = max(worst["group"], off(found[pairs], true[pairs]))
    return worst, {"true": len(true), "found": len(true.keys() & found.keys()),
                   "spurious": len(found.keys() - true.keys())}


def use(topology, folder):
    """What `rondo solve` and `rondo compare` make of a topology: AllGather and AllReduce, us, gap and gain."""
    path, figures = folder / "fabric.json", folder / "comparison.json"
    path.write_text(json.dumps(topology))
    solved = subprocess.run([str(RONDO), "solve", "--topology", str(path), "--collective", "allgather", "--size", SIZE,
                             "--output", str(folder / "run"), "--force"], capture_output=True, text=True)
    compared = subprocess.run([str(RONDO), "compare", "--topology", str(path), "--collective", "allgather,allreduce",
                               "--size", SIZE, "--gap", "1%", "--json", str(figures), "--force"], capture_output=True, text=True)
    if solved.returncode != 0 or compared.returncode != 0:
        sys.exit(f"{path}: {solved.stderr}{compared.stderr}")
    report = json.loads((folder / "run" / "report.json").read_text())
    row = {"finish_us": report["finish_us"], "lower_bound_us": report["lower_bound_us"]}
    for each in json.loads(figures.read_text())["rows"]:
        row[each["collective"]] = {"best_known": each["best_known"], "gain": each["gain"]}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", default=str(ROOT / "benchmarks/results/profile.json"))
    parser.add_argument("--defaults", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = build()
        for platform in (flat(), two_level(), shared_nic(), slow_link()):
            if options.only not in platform.name:
                continue
            for kind, config in [("plain", PLAIN)] + ([("defaults", [])] if options.defaults else []):
                topology, text, seconds = run(program, platform, folder, config)
                worst, groups = compare(platform, topology)
                print(f"== {platform.name}, {kind}, {seconds:.1f} s\n{text}", flush=True)
                print("   off by at most: " + ", ".join(f"{k} {100 * v:.2f} %" for k, v in worst.items()) +
                      f"; groups {groups}", flush=True)
                used = None
                if kind == "plain":
                    used = {"measured": use(topology, folder), "true": use(platform.topology(), folder)}
                    print(f"   {SIZE}: {used}", flush=True)
                rows.append({"platform": platform.name, "model": kind, "config": ALWAYS + config, "ranks": platform.hosts,
                             "worst": worst, "groups": groups, "used": used, "says": text.splitlines(), "seconds": round(seconds, 1)})
    pathlib.Path(options.json).write_text(json.dumps(
        {"benchmark": "profile", "commit": commit.stdout.strip(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
