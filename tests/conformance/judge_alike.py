#!/usr/bin/env python3
"""The reference replay judges what the mutation tests of Rondo's replay have judged, valid schedules and broken ones.

    judge_alike.py REPLAY_TESTS [EVERY]

runs the tests of transfers and sums, of whose schedules every EVERY-th one (default 50; 1: all, a thousand a rule) is judged again. Exit code 0:
the two replays agree on each, and on the finish of the valid ones.
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
from schedule_file import Invalid, equal, schedule_of  # noqa: E402


def verdict(data):
    """None where the sends are valid, with the finish that the schedule claims."""
    try:
        schedule = schedule_of(data)
        judged = replay.Replay(schedule)
    except Invalid as error:
        return str(error)
    if judged.violations.rule:
        return judged.violations.sentence
    # Of what Rondo refuses the claimed finish means nothing.
    return None if equal(judged.finish, schedule.finish) else f"it ends at {judged.finish} us"


def main(program, every="50"):
    counts, different = {True: 0, False: 0}, 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "judged.jsonl"
        environment = dict(os.environ, RONDO_JUDGED=str(path), RONDO_JUDGED_EVERY=every)
        filters = "--gtest_filter=TransferMutations.*:SumMutations.*"
        done = subprocess.run([program, filters], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        with open(path, encoding="utf-8") as file:
            for line in file:
                judged = json.loads(line)
                why = verdict(judged["schedule"])
                counts[judged["valid"]] += 1
                accepts = why is None if judged["valid"] else why is None or why.startswith("it ends at")
                if accepts != judged["valid"]:
                    different += 1
                    print(f"Rondo: {judged['violation'] or 'valid'}; reference: {why or 'valid'}")
                    print(json.dumps(judged["schedule"]))
    print(f"{counts[True]} valid and {counts[False]} broken schedules, {different} of them judged differently")
    return 1 if different or not all(counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
