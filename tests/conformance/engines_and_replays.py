#!/usr/bin/env python3
"""Small problems of every family of engines: the reference replay accepts each schedule, with the finish of the report.

    engines_and_replays.py COMMANDS_IN_TURN

whose command line is rondo's (tests/cli/commands_in_turn.cpp). `rondo solve` has replayed it too, so that the two replays agree.
Exit code 0, or 1 where one of them differs.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "io" / "conformance"))

import replay  # noqa: E402
from schedule_file import Invalid, equal  # noqa: E402

FAST_UPLINKS = "fat_tree:leaves=3,gpus=2,spines=1,link_GBps=50,uplink_GBps=75"
# MESSAGES and STEPS: fabrics with message costs, and with bandwidth that changes; GROUPS and STORES: with links faster than
# what they share, and with switches that store.
PROBLEMS = [
    "--topology torus:dims=3x3 --collective allgather --size 9MB --engine list --chunks 2 --improve-work 1e5",
    "--topology ring:gpus=6 --collective allgather --size 6MB --engine queue --chunks 2",
    "--topology dgx1 --collective allgather --size 8MB --engine trees --chunks 2",
    "--topology ring:gpus=4 --collective allgather --size 40KB --engine milp --chunks 1",
    "--topology star:chassis=2,gpus=2 --collective allgather --size 6MB --engine rounds --chunks 1",
    "--topology mesh:dims=2x3 --collective alltoall --size 6MB --engine lp --chunks 1",
    "--topology dgx1 --collective alltoall --size 8MB --engine flow",
    f"--topology {FAST_UPLINKS} --collective alltoall --size 6MB --concurrency 0",
    "--topology dragonfly:groups=3,routers=2,hosts=1 --collective alltoall --size 6MB --engine flow "
    "--policy orbits-constant --concurrency 2 --chunks 1",
    f"--topology {FAST_UPLINKS} --collective allgather --size 6MB --engine list --policy rarest-fitting --chunks 2",
    "--topology dgx1 --collective reduce_scatter --size 8MB --improve-work 1e5",
    # In its switches many sums pass at one instant; its bound is one of joint cuts.
    "--topology fat_tree:leaves=3,gpus=3,spines=2 --collective reduce_scatter --size 64KB --engine list --policy soonest "
    "--chunks 4 --improve-work 0",
    "--topology mesh:dims=2x3 --collective allreduce --size 6MB",
    "--topology star:chassis=4,gpus=1 --collective allreduce --size 4MB --engine spanning",
    "--topology MESSAGES --collective allgather --size 64KB --improve-work 1e5",
    "--topology MESSAGES --collective alltoall --size 64KB",
    "--topology MESSAGES --collective allreduce --size 64KB --improve-work 1e4",
    "--topology STEPS --collective allgather --size 6MB --improve-work 1e5",
    "--topology STEPS --collective alltoall --size 6MB --improve-work 1e4",
    "--topology STEPS --collective allreduce --size 6MB",
    "--topology GROUPS --collective allgather --size 1MB --improve-work 1e4",
    "--topology GROUPS --collective alltoall --size 1MB",
    "--topology GROUPS --collective allreduce --size 1MB --improve-work 1e4",
    "--topology STORES --collective allreduce --size 1KB --improve-work 1e4",
    "--topology STORES --collective reduce --size 1MB --improve-work 1e4",
    # With little data its bound is one of knowledge, which the reference checks for a minute; others of that kind are quick.
    "--topology ndv2-2-taccl --collective allreduce --size 16MB --gap 0.9",
]
# Sums by every engine that makes them.
SUMS = [(engine, fabric) for engine, fabrics in {
    "auto": ["ring:gpus=4", "full:gpus=5", "star:chassis=2,gpus=3", "rails:boxes=2,rails=2", "mesh:dims=3x3", "dgx1", "dgx2-2",
             "ndv2-2"],
    **dict.fromkeys(["list", "ring", "tree", "direct", "recursive", "bruck"], ["ring:gpus=4", "rails:boxes=2,rails=2", "dgx1"]),
    "exchange": ["ring:gpus=4", "rails:boxes=2,rails=2", "dgx1", "mesh:dims=3x3", "dgx2-2"],
    "hierarchical": ["rails:boxes=2,rails=2", "ndv2-2"],
    "spanning": ["mesh:dims=3x3", "dgx1"],
}.items() for fabric in fabrics]


class Checks:
    def __init__(self, commands_in_turn, folder):
        self.folder, self.failures = pathlib.Path(folder), 0
        asked, requests = os.pipe()
        answers, answered = os.pipe()
        self.program = subprocess.Popen([commands_in_turn, str(asked), str(answered)], pass_fds=(asked, answered))
        os.close(asked)
        os.close(answered)
        self.requests, self.answers = os.fdopen(requests, "w"), os.fdopen(answers)

    def run(self, *arguments):
        arguments, err = list(map(str, arguments)), self.folder / "err"
        request = {"arguments": arguments, "folder": str(self.folder), "out": str(self.folder / "out"), "err": str(err)}
        print(json.dumps(request), file=self.requests, flush=True)
        code = self.answers.readline().strip()
        if code != "0":
            sys.exit(f"rondo {' '.join(arguments)}: {f'exit code {code}' if code else 'it crashed'}\n{err.read_text()}")

    def fabric(self, name, spec, change):
        path = self.folder / f"{name}.json"
        self.run("topology", "generate", spec, "--output", path)
        topology = json.loads(path.read_text())
        change(topology)
        path.write_text(json.dumps(topology))
        return path

    def accept(self, what, path, finish_us):
        """The reference replay accepts the schedule with this finish."""
        try:
            finish = replay.verify(path)
            why = "" if equal(finish, finish_us) else f"it ends at {finish} us, not at {finish_us}"
        except Invalid as error:
            why = str(error)
        self.failures += bool(why)
        print(f"{what}: {why or f'{finish_us:.6g} us'}", flush=True)

    def solve(self, arguments):
        run, exported = self.folder / "run", self.folder / "schedule.json"
        self.run("solve", *arguments.split(), "--output", run, "--force")
        self.run("export", run, "--format", "json", "--output", exported)
        report = json.loads((run / "report.json").read_text())
        self.accept(arguments, exported, report["finish_us"])
        # Where another engine has a schedule too, a fault of one is a remark.
        for fault in [remark for remark in report["remarks"] if "fault of Rondo" in remark]:
            self.failures += 1
            print(f"{arguments}: {fault}", flush=True)

    def replayed(self, arguments):
        """The schedule of the last run, timed anew; what ends it is what rondo writes."""
        path = self.folder / "replayed.json"
        self.run("replay", self.folder / "run", *arguments.split(), "--output", path)
        self.accept(f"replay {arguments}", path, json.loads(path.read_text())["finish_us"])


def add_message_costs(topology):
    for link in topology["links"]:
        link["message_us"] = 0.7
    topology["version"] = 2


def add_steps(topology):
    for at, link in enumerate(topology["links"]):
        bandwidth = link["bandwidth_GBps"]
        if at % 4 == 0:
            link["bandwidth_steps"] = [{"from_us": 0, "GBps": bandwidth}, {"from_us": 10, "GBps": bandwidth / 2}]
        if at % 7 == 1:
            link["bandwidth_steps"] = [{"from_us": 0, "GBps": bandwidth}, {"from_us": 5, "GBps": 0},
                                       {"from_us": 40, "GBps": bandwidth}]
    topology["version"] = 2


def narrow_groups(topology):
    """What two GPUs send, and what they receive, is at most a quarter of a link's bandwidth."""
    links = topology["links"]
    for end in ("src", "dst"):
        of_gpu = {link[end]: link["id"] for link in links if topology["nodes"][link[end]]["kind"] == "gpu"}
        for a in range(0, len(of_gpu) - 1, 2):
            topology.setdefault("shared_bandwidth", []).append(
                {"name": f"{end}{a}", "links": sorted([of_gpu[a], of_gpu[a + 1]]),
                 "bandwidth_GBps": links[of_gpu[a]]["bandwidth_GBps"] / 4})


def store(topology):
    for node in topology["nodes"]:
        if node["kind"] == "switch":
            node.update(forwarding="store_and_forward", multicast=False)


def main(commands_in_turn):
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(commands_in_turn, folder)
        fabrics = {"MESSAGES": checks.fabric("MESSAGES", "star:chassis=2,gpus=3", add_message_costs),
                   "STEPS": checks.fabric("STEPS", "mesh:dims=2x3", add_steps),
                   "GROUPS": checks.fabric("GROUPS", "star:chassis=4,gpus=1", narrow_groups),
                   "STORES": checks.fabric("STORES", "star:chassis=3,gpus=1", store)}
        for problem in PROBLEMS:
            for name, path in fabrics.items():
                problem = problem.replace(name, str(path))
            checks.solve(problem)
        for engine, fabric in SUMS:
            checks.solve(f"--topology {fabric} --collective allreduce --size 16KB --gap 0.9 --engine {engine}")
        checks.solve(PROBLEMS[0])
        checks.replayed("--size 1MB --message-us 0.5")
        checks.replayed("--degrade 0.2:0.5")
        checks.requests.close()
        return 1 if checks.failures or checks.program.wait() else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
