#!/usr/bin/env python3
"""Writes cases/ and verdicts.json.

    make_cases.py            writes them
    make_cases.py --check    exit code 1 where replay.py judges a case otherwise than verdicts.json says, or a file is not what
                             this program writes

Verdicts and finish times stand in cases_version1.py, cases_version2.py, cases_shapes.py and cases_sharing.py; no replay computes them.
"""
import json
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # leave the source folder as it is

import cases_shapes  # noqa: E402
import cases_sharing  # noqa: E402
import cases_version1  # noqa: E402
import cases_version2  # noqa: E402
from case_writer import HERE, Cases  # noqa: E402
from schedule_file import equal  # noqa: E402


def judge(paths):
    """What replay.py prints, by file name, as verdicts."""
    run = subprocess.run([sys.executable, str(HERE / "replay.py"), *map(str, paths)], capture_output=True, text=True, check=False)
    found = {}
    for line in run.stdout.splitlines():
        path, verdict, rest = re.fullmatch(r"(.*\.json): (valid|invalid:) (.*)", line).groups()
        rule = re.match(r"(?:rule )?(\w+): .", rest)
        found[pathlib.Path(path).name] = ({"valid": True, "finish_us": float(rest)} if verdict == "valid" else
                                          {"valid": False, "rule": rule[1], "sentence": rest})
    if run.returncode != 65 or run.stderr or len(found) != len(paths):
        sys.exit(f"replay.py: exit code {run.returncode}, {len(found)} verdicts for {len(paths)} files\n{run.stderr}")
    return found


def agrees(verdict, found):
    if verdict["valid"] != found["valid"]:
        return False
    return equal(verdict["finish_us"], found["finish_us"]) if verdict["valid"] else verdict["rule"] == found["rule"]


def check(cases):
    verdicts = json.loads((HERE / "verdicts.json").read_text())
    wrong = []
    if verdicts != cases.verdicts:
        wrong.append("verdicts.json is not what make_cases.py writes")
    if {path.name for path in (HERE / "cases").iterdir()} != verdicts.keys():
        wrong.append("cases/ and verdicts.json name different files")
    found = judge([HERE / "cases" / name for name in verdicts])
    for name, verdict in verdicts.items():
        if json.loads((HERE / "cases" / name).read_text()) != cases.files.get(name):
            wrong.append(f"{name} is not what make_cases.py writes")
        if not agrees(verdict, found[name]):
            wrong.append(f"{name}: expected {verdict}, found {found[name]}")
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    print(f"{len(verdicts)} cases, {sum(v['valid'] for v in verdicts.values())} of them valid; {len(wrong)} disagree")
    return 1 if wrong else 0


def main():
    cases = Cases()
    cases_version1.add(cases)
    cases_version2.add(cases)
    cases_shapes.add(cases)
    cases_sharing.add(cases)
    if sys.argv[1:] == ["--check"]:
        return check(cases)
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 64
    cases.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
