#!/usr/bin/env python3
"""Small problems of every family of engines: the reference replay accepts each schedule, with the finish of the report.

    engines_and_replays.py RONDO

`rondo solve` has replayed it too, so that the two replays agree. Exit code 0, or 1 where one of them differs.
"""
import json
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
# MESSAGES and STEPS: fabrics with message costs, and with bandwidth that changes.
PROBLEMS = [
    "--topology torus:dims=3x3 --collective allgather --size 9MB --engine list --chunks 2 --improve-work 1e5",
    "--topology ring:gpus=6 --collective allgather --size 6MB --engine queue --chunks 2",
    "--topology dgx1 --collective allgather --size 8MB --engine trees --chunks 2",
    "--topology ring:gpus=4 --collective allgather --size 40KB --engine milp --chunks 1",
    "--topology star:chassis=2,gpus=3 --collective allgather --size 6MB --engine rounds --chunks 2",
    "--topology mesh:dims=2x3 --collective alltoall --size 6MB --engine lp --chunks 1",
    "--topology dgx1 --collective alltoall --size 8MB --engine flow",
    f"--topology {FAST_UPLINKS} --collective alltoall --size 6MB --concurrency 0",
    "--topology dragonfly:groups=3,routers=2,hosts=1 --collective alltoall --size 6MB --engine flow "
    "--policy orbits-constant --concurrency 2 --chunks 1",
    f"--topology {FAST_UPLINKS} --collective allgather --size 6MB --engine list --policy rarest-fitting --chunks 2",
    "--topology dgx1 --collective reduce_scatter --size 8MB --improve-work 1e5",
    "--topology mesh:dims=2x3 --collective allreduce --size 6MB",
    "--topology star:chassis=4,gpus=1 --collective allreduce --size 4MB --engine spanning",
    "--topology MESSAGES --collective allgather --size 64KB --improve-work 1e5",
    "--topology MESSAGES --collective alltoall --size 64KB",
    "--topology MESSAGES --collective allreduce --size 64KB",
    "--topology STEPS --collective allgather --size 6MB --improve-work 1e5",
    "--topology STEPS --collective alltoall --size 6MB",
    "--topology STEPS --collective allreduce --size 6MB",
]


class Checks:
    def __init__(self, rondo, folder):
        self.rondo, self.folder, self.failures = rondo, pathlib.Path(folder), 0

    def run(self, *arguments):
        done = subprocess.run([self.rondo, *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"rondo {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")

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
        self.accept(arguments, exported, json.loads((run / "report.json").read_text())["finish_us"])

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


def main(rondo):
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(rondo, folder)
        fabrics = {"MESSAGES": checks.fabric("MESSAGES", "star:chassis=2,gpus=3", add_message_costs),
                   "STEPS": checks.fabric("STEPS", "mesh:dims=2x3", add_steps)}
        for problem in PROBLEMS:
            for name, path in fabrics.items():
                problem = problem.replace(name, str(path))
            checks.solve(problem)
        checks.solve(PROBLEMS[0])
        checks.replayed("--size 1MB --message-us 0.5")
        checks.replayed("--degrade 0.2:0.5")
        return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
