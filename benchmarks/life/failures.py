"""Links that fail while a schedule is running: the repair beside solving anew on the fabric that is left."""

import json
import random
import resource
import statistics
import sys

FABRICS = ["ndv2-2", "dgx1", "torus:dims=4x4", "rails:boxes=2,gpus=4", "fat_tree:leaves=4,gpus=4", "amd-1"]
COLLECTIVES = ["allgather", "alltoall", "reducescatter", "allreduce", "broadcast"]
SEED = 24


def cpu_s():
    """Of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def joined_pairs(topology):
    """The names of each two nodes that links join."""
    names = {node["id"]: node.get("name", str(node["id"])) for node in topology["nodes"]}
    return sorted({tuple(sorted((names[link["src"]], names[link["dst"]]))) for link in topology["links"]})


class Failures:
    """Fails one pair of nodes after another; remembers what was solved before."""

    def __init__(self, runs):
        self.runs, self.running, self.topologies, self.anew = runs, {}, {}, {}

    def schedule(self, fabric, collective):
        key = (fabric, collective)
        if key not in self.running:
            folder = self.runs.folder / f"running-{len(self.running)}"
            report = self.runs.solve(folder.name, *self.words(fabric, collective), ranks=1)
            exported = folder.with_suffix(".json")
            if self.runs.run("export", folder, "--format", "json", "--output", exported, ranks=1)[0] != 0:
                report = None
            else:
                self.topologies[fabric] = json.loads(exported.read_text())["topology"]
            self.running[key] = (folder, report)
        return self.running[key]

    @staticmethod
    def words(fabric, collective):
        return ["--topology", fabric, "--collective", collective, "--size", "16MB", "--improve-work", "1e5", "--gap", "1%"]

    def fail(self, fabric, collective, share, pick):
        """A row of what came of it; nothing where a command failed, which is told and counted."""
        folder, report = self.schedule(fabric, collective)
        if report is None:
            return None
        pairs = joined_pairs(self.topologies[fabric])
        pair = ":".join(pairs[int(pick * len(pairs))])
        at_us = share * report["finish_us"]
        row = {"fabric": fabric, "collective": collective, "at_us": at_us, "without": pair, "undisturbed_us": report["finish_us"]}
        rest, whole = self.runs.folder / "rest.json", self.runs.folder / "whole.h5"
        rest.unlink(missing_ok=True)
        begin = cpu_s()
        code, _, error = self.runs.run("repair", folder, "--at", repr(at_us), "--without", pair, "--output", rest, "--whole", whole, ranks=1)
        row["cpu_s"] = cpu_s() - begin
        if code == 65 and "nothing is left to do" in error:
            return {**row, "outcome": "nothing left"}
        if code in (65, 69) and not rest.exists() and "internal" not in error:
            return {**row, "outcome": "refused", "why": error.strip().splitlines()[-1][:300]}
        checked = code == 0 and all(self.runs.run("verify", file, ranks=1)[0] == 0 for file in (rest, whole))
        if not checked:
            self.runs.fail(f"repair {fabric} {collective} at {at_us} without {pair}", code, error)
            return None
        data = json.loads(rest.read_text())
        row |= {"outcome": "repaired", "rest_us": data["finish_us"], "bound_us": data["lower_bound"]["us"]}
        key = (fabric, collective, pair)
        if key not in self.anew:
            begin = cpu_s()
            anew = self.runs.solve("anew", *self.words(fabric, collective), "--without", pair, ranks=1)
            self.anew[key] = anew and (anew["finish_us"], cpu_s() - begin)
        if self.anew[key] is None:
            return None
        row["anew_us"], row["anew_cpu_s"] = self.anew[key]
        return row


def random_failures(runs, count):
    """Random fabric, collective, time and link."""
    if not runs.wants("failures", "random"):
        return
    draw, failures = random.Random(SEED), Failures(runs)
    for number in range(count):
        drawn = draw.choice(FABRICS), draw.choice(COLLECTIVES), draw.random(), draw.random()
        row = failures.fail(*drawn)
        if row is not None:
            runs.add("failures", f"random {number}", **row)
        sys.stdout.flush()


def summaries(rows):
    """A line for each collective, and one for all."""
    lines = []
    for collective in [*COLLECTIVES, "all"]:
        these = [row for row in rows if collective in ("all", row["collective"])]
        rests = [row for row in these if row["outcome"] == "repaired"]
        if not rests:
            continue
        gaps = [row["rest_us"] / row["bound_us"] - 1 for row in rests]
        shares = [row["rest_us"] / row["anew_us"] for row in rests]
        later = [(row["at_us"] + row["rest_us"]) / row["undisturbed_us"] for row in rests]
        cpu = [row["cpu_s"] for row in rests]
        lines.append({"collective": collective, "failures": len(these), "repaired": len(rests),
                      "nothing_left": sum(row["outcome"] == "nothing left" for row in these),
                      "refused": sum(row["outcome"] == "refused" for row in these),
                      "gap": statistics.median(gaps), "worst_gap": max(gaps), "later": statistics.median(later),
                      "of_anew": statistics.median(shares), "worst_of_anew": max(shares),
                      "sooner": sum(share <= 1 for share in shares), "cpu_s": statistics.median(cpu), "worst_cpu_s": max(cpu),
                      "anew_cpu_s": statistics.median(row["anew_cpu_s"] for row in rests)})
    return lines


def single_failures(runs):
    """Each pair of nodes that links join loses these, halfway."""
    for fabric in ("rails:boxes=4", "ndv2-4"):
        for collective in ("allgather", "alltoall"):
            case = f"{fabric} {collective}"
            if not runs.wants("single failures", case):
                continue
            report = runs.solve("running", "--topology", fabric, "--collective", collective, "--size", "64MB", "--improve-work", "1e5",
                                "--gap", "1%")
            if not report:
                continue
            folder = runs.folder / f"single-{len(runs.rows)}"
            begin = cpu_s()
            code, seconds, error = runs.run("repair", runs.folder / "running", "--at", repr(report["finish_us"] / 2),
                                            "--all-single-failures", "--output", folder)
            used = cpu_s() - begin
            if code != 0:
                runs.fail(f"repair of all single failures of {case}", code, error)
                continue
            each = json.loads((folder / "failures.json").read_text())
            for file in folder.glob("*.h5"):
                if runs.run("verify", file, ranks=1)[0] != 0:
                    runs.fail(f"verify {file}", 65, "")
            done = [row for row in each if "refused" not in row]
            gaps = [row["finish_us"] / row["lower_bound_us"] - 1 for row in done if "finish_us" in row]
            runs.add("single failures", case, failures=len(each), refused=len(each) - len(done), finish_us=report["finish_us"],
                     latest_us=max(row["whole_finish_us"] for row in done), gap=statistics.median(gaps), worst_gap=max(gaps),
                     slowest_s=max(row["seconds"] for row in done), cpu_s=used, wall_s=seconds)
