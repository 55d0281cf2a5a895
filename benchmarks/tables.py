#!/usr/bin/env python3
"""Writes the tables of benchmarks/README.md from benchmarks/results/*.json.

    benchmarks/tables.py NAME...   replaces these tables, after a run of the benchmark: fabrics, table8, ...
    benchmarks/tables.py --check   exit code 1 where a table differs from its results

A table stands between <!-- NAME --> and <!-- end NAME -->. Its first line names the commit that was measured: HEAD when the
table is replaced, so run this before the results are committed. Python's standard library suffices.
"""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "life"))
sys.dont_write_bytecode = True

import columns  # noqa: E402

README = HERE / "README.md"


def percent(gap, digits=2):
    return f"{100 * gap:.{digits}f} %"


def fixed(digits, missing="-"):
    return lambda value: missing if value is None else f"{value:.{digits}f}"


def megabytes(report):
    return f"{report['peak_rss_bytes']['sum'] / 1e6:.0f}"


def option(name):
    """The value of `--name` in the command of a case of benchmark linear."""
    return lambda row: re.search(rf"--{name} (\S+)", row["case"]).group(1)


def of(key, show=str):
    return lambda row: show(row.get(key))


def reported(key, show=str):
    return lambda row: show(row["report"].get(key))


def metric(key, show=str):
    return lambda row: show(row["report"]["metrics"].get(key))


FINISH = [("finish us", reported("finish_us", fixed(3))), ("bound us", reported("lower_bound_us", fixed(3)))]
WALL = ("wall s", of("wall_s", fixed(2)))
MEMORY = ("MB", lambda row: megabytes(row["report"]))


def gap(digits):
    return ("gap", lambda row: percent(row["report"]["gap"], digits))


def allgather_case(row):
    """Without the options that all cases of a group share."""
    if row["group"].startswith("tacos"):
        return row["case"].split(",bandwidth_GBps")[0] + (", TACOS" if row["group"] == "tacos" else ", own")
    return row["case"].replace(" --time-limit 60", "")


def seconds_of(row, name):
    return next(fixed(3)(w["seconds"]) for w in row["ways"] if w["way"] == name)


def comparison(first, second):
    return [("fabric", of("fabric")), (f"{first} s", lambda row: seconds_of(row, first)),
            (f"{second} s", lambda row: seconds_of(row, second)),
            ("relative difference", of("difference", lambda x: f"{x:.0e}"))]


def rows(file, key="rows", **wanted):
    found = json.loads((HERE / "results" / f"{file}.json").read_text()).get(key, [])  # older results have fewer lists
    return [row for row in found if all(row.get(name) == value for name, value in wanted.items())]


def linear(section):
    return lambda: rows("linear", section=section)


def allgather_finish(row):
    """Of the AllGather of the same fabric and size, in benchmark fabrics."""
    same = rows("fabrics", fabric=row["fabric"], collective="allgather", size=row["size"])
    return fixed(3)(same[0]["report"]["finish_us"]) if same else "-"


KNOWN = ["ring", "tree", "direct", "recursive", "bruck", "exchange"]


def known_algorithms():
    """A row for each fabric and size that known algorithms were asked for: that of auto, with their finishes."""
    merged = []
    for row in rows("combining", collective="allreduce", asked=None):
        by_name = {other["asked"]: other["report"]["finish_us"] for other in rows("combining", collective="allreduce")
                   if other.get("asked") and (other["fabric"], other["size"]) == (row["fabric"], row["size"])}
        if by_name:
            merged.append(row | by_name)
    return merged


SIZES = ["1KB", "4KB", "16KB", "64KB", "256KB", "1MB", "4MB", "16MB", "64MB", "256MB", "1GB"]


def gaps_of_sizes():
    """A row for each fabric and collective, with the gap at each size."""
    merged = {}
    for row in rows("sizes"):
        first = merged.setdefault((row["fabric"], row["collective"]), row | {"longest_s": 0})
        first[row["size"]] = row["report"]["gap"]
        first["longest_s"] = max(first["longest_s"], row["wall_s"])
    return list(merged.values())


def sccl(chunks, steps, rounds):
    """What an AllReduce of SCCL's for a DGX-1 takes: links of 25 GB/s and 0.7 us."""
    return lambda row: fixed(3)(steps * 0.7 + rounds / chunks * row["report"]["size_bytes"] / 25e3)


COMPARED = ["ring", "tree", "direct", "recursive", "bruck", "hierarchical"]


def sketched(engine, key, digits):
    """Of a row of benchmark taccl; seconds are of the whole command."""
    def show(row):
        of_engine = row[engine] if key == "wall_s" else row[engine]["report"] or {}
        return fixed(digits)(of_engine.get(key))
    return show


def compared():
    """A row for each collective and size of a finished comparison, with the finish of each engine by its name."""
    return [{"fabric": each["topology"], **row, **{result["engine"]: result.get("finish_us") for result in row["results"]}}
            for each in rows("compare", "comparisons") for row in each["rows"] if "gain" in row]


def significant(value):
    return "-" if value is None else f"{value:.6g}"


def links(table):
    return lambda: rows("links", table=table)


def kept_finish(name):
    return lambda row: fixed(3)(row[name]["report"]["finish_us"])


def share_of_time(row):
    """Of the processor time from scratch, what beginning with the kept schedule takes."""
    return percent(row["cpu_s"] / row["anew"]["cpu_s"], 0)


def later_than_anew(row):
    return percent(row["report"]["finish_us"] / row["anew"]["report"]["finish_us"] - 1, 3)


# name of the table -> its rows, and a heading and a function of a row for each column
TABLES = {
    "table8": (lambda: rows("table8"),
               [("collective", of("collective")), ("size", of("size")), *FINISH, gap(2),
                ("wall s", of("wall_s", fixed(1))), ("TE-CCL us", of("teccl_finish_us", fixed(3))),
                ("TE-CCL solver s", of("teccl_solver_s", fixed(2))), ("TACCL us", of("taccl_finish_us", fixed(3)))]),
    "allgather": (lambda: rows("allgather"),
                  [("fabric", allgather_case), ("GPUs", of("gpus")), *FINISH, gap(3), ("chunks", reported("chunks")),
                   ("sends", reported("sends")), WALL, MEMORY]),
    "fabrics": (lambda: rows("fabrics"),
                [("fabric", of("fabric")), ("collective", of("collective")), ("size", of("size")), *FINISH, gap(3),
                 ("chunks", reported("chunks")), WALL, ("engine", reported("engine"))]),
    "known": (known_algorithms,
              [("fabric", of("fabric")), ("size", of("size")), ("bound us", reported("lower_bound_us", fixed(3))),
               ("auto us", reported("finish_us", fixed(3))), *((name, of(name, fixed(3))) for name in KNOWN)]),
    "compare": (compared,
                [("fabric", of("fabric")), ("collective", of("collective")), ("bytes", of("size_bytes", lambda x: f"{x:.0f}")),
                 ("bound us", of("lower_bound_us", significant)), ("auto us", of("auto", significant)),
                 *((name, of(name, significant)) for name in COMPARED), ("gain", of("gain", fixed(3)))]),
    "simgrid": (lambda: rows("simgrid"),
                [("fabric", of("fabric")), ("collective", of("collective")), ("size", of("size")), ("transfers", of("transfers")),
                 ("replay us", of("finish_us", fixed(3))), ("in order us", of("order", fixed(3))),
                 ("differs", lambda row: percent(row["order"] / row["finish_us"] - 1, 4)),
                 ("no order us", of("free", fixed(3))), ("later", lambda row: percent(row["free"] / row["finish_us"] - 1, 1)),
                 *((name, lambda row, key=key: (lambda us: "-" if us is None else f"{us:.1f} ({us / row['finish_us']:.2f})")(row["mpi"].get(key)))
                   for name, key in (("Open MPI us", "ompi"), ("MPICH us", "mpich")))]),
    "tuning": (lambda: rows("tuning"),
               [("model", of("model")), ("noise", of("noise", lambda x: percent(x, 0))), ("method", of("method")),
                ("within 2 %", lambda row: f"{row['near']} of {row['cases']}"), ("mean loss", of("mean_loss", percent)),
                ("worst loss", of("worst_loss", percent)), ("runs", of("runs", fixed(0)))]),
    "catalogue": (lambda: [row for row in rows("catalogue") if "sampled" in row],
                  [("fabric", of("fabric")), ("ranks", of("ranks")), ("cells", of("cells")), ("schedules", of("schedules")), ("bins", of("bins")),
                   ("MB", lambda row: f"{row['bytes'] / 1e6:.1f}"), ("build s", of("wall_s", fixed(0))), ("CPU s", of("cpu_s", fixed(0))),
                   ("kills", lambda row: f"{row['kills']}, {'same' if row['same_after_kills'] else 'OTHER'}"),
                   ("best of all", lambda row: f"{row['sampled']['best']} of {row['sampled']['sizes']}"),
                   ("most lost", lambda row: percent(row["sampled"]["largest_loss"])), ("look-up us", lambda row: fixed(1)(row["sampled"]["lookup_us"])),
                   ("check", lambda row: row.get("verdicts", "-")),
                   ("refresh", lambda row: percent(row["refresh_cpu_s"] / row["fresh_cpu_s"], 0) if "fresh_cpu_s" in row else "-"),
                   ("later", lambda row: percent(row["refreshed_over_fresh"]["mean"] - 1) if "fresh_cpu_s" in row else "-"),
                   ("at most", lambda row: percent(row["refreshed_over_fresh"]["most"] - 1) if "fresh_cpu_s" in row else "-")]),
    "catalogue_sketches": (lambda: [cell for row in rows("catalogue") if row["fabric"].startswith("sketches ")
                                    for cell in row["cells"] if cell["gap"] > 0.01],
                 [("fabric", of("on")), ("collective", of("collective")), ("size", lambda row: f"{row['size_bytes'] / 1e3:g} KB" if row["size_bytes"] < 1e6 else f"{row['size_bytes'] / 1e6:g} MB"),
                  ("us", of("finish_us", fixed(3))), ("gap", lambda row: percent(row["gap"])),
                  ("with sketches us", of("sketched_us", fixed(3))),
                  ("over without", lambda row: fixed(4)(row["sketched_us"] / row["finish_us"])),
                  ("won", lambda row: row["sketch"] or "-")]),
    "catalogue_kills": (lambda: [row for row in rows("catalogue") if row["fabric"] == "kills"],
                        [("kills", of("kills")), ("builds", of("builds")), ("cells of each", of("cells")), ("wrong", of("wrong"))]),
    "profile": (lambda: rows("profile"),
                [("platform", of("platform")), ("model", of("model")), ("ranks", of("ranks")),
                 *((name, lambda row, name=name: percent(row["worst"][name])) for name in ("latency", "message", "bandwidth", "group")),
                 ("groups", lambda row: f"{row['groups']['found']} of {row['groups']['true']}, {row['groups']['spurious']} others"),
                 ("s", of("seconds", fixed(1)))]),
    "sccl": (lambda: rows("combining", collective="allreduce", fabric="dgx1", asked=None),
             [("size", of("size")), *FINISH, ("(48,6,14) us", sccl(48, 6, 14)), ("(16,4,6) us", sccl(16, 4, 6)),
              ("(8,4,4) us", sccl(8, 4, 4))]),
    "synthesis": (lambda: rows("sccl"),
                  [("fabric", of("fabric")), ("collective", of("collective")),
                   ("(C,S,R)", lambda row: f"({row['chunks']},{row['steps']},{row['rounds']})"),
                   ("answer", of("answer")), ("search s", of("search_s", fixed(3))), ("wall s", of("wall_s", fixed(2))), ("paper s", of("paper_s", fixed(1))),
                   ("z3 s", lambda row: f"> {row.get('z3_cap_s', 60)}" if row.get("z3_answer") == "timeout" else of("z3_s", fixed(1))(row) if "z3_s" in row else "-"),
                   ("finish us", lambda row: reported("finish_us", fixed(3))(row) if row["report"] else "-"),
                   ("cost us", lambda row: metric("step_cost_us", fixed(3))(row) if row["report"] else "-")]),
    "sketches": (lambda: rows("taccl"),
                 [("collective", of("collective")), ("sketch", of("sketch")), ("size", of("size")),
                  ("route us", sketched("route", "finish_us", 3)), ("route s", sketched("route", "wall_s", 1)),
                  ("heeds", lambda row: row["route"]["parts"]),
                  ("auto us", sketched("auto", "finish_us", 3)), ("auto s", sketched("auto", "wall_s", 1)),
                  ("bound us", sketched("auto", "lower_bound_us", 3)), ("paper s", of("paper_s", fixed(1)))]),
    "allreduce": (lambda: rows("combining", collective="allreduce", asked=None),
                  [("fabric", of("fabric")), ("size", of("size")), *FINISH, gap(3),
                   ("GB/s", reported("algorithm_bandwidth_GBps", fixed(2))), ("chunks", reported("chunks")), WALL,
                   ("engine", reported("engine"))]),
    "reduce_scatter": (lambda: rows("combining", collective="reduce_scatter"),
                       [("fabric", of("fabric")), ("size", of("size")), *FINISH, gap(3),
                        ("AllGather us", allgather_finish), ("chunks", reported("chunks")), WALL]),
    "shapes": (lambda: rows("combining", "shapes"),
               [("fabric", of("fabric")), ("case", of("case")), *FINISH, gap(2),
                ("GB/s", reported("algorithm_bandwidth_GBps", fixed(2))), ("chunks", reported("chunks")), WALL,
                ("engine", reported("engine"))]),
    "fat_trees": (links("fat_trees"),
                  [("case", of("case")), *FINISH, gap(4), ("chunks", reported("chunks")), WALL,
                   ("engine", reported("engine"))]),
    "messages": (links("messages"),
                 [("case", of("case")), *FINISH, gap(2), ("TACCL us", of("taccl_finish_us", fixed(3))),
                  ("chunks", reported("chunks")), WALL, ("engine", reported("engine"))]),
    "drift": (links("drift"),
              [("case", of("case")), *FINISH, ("from scratch us", kept_finish("anew")), ("later", later_than_anew),
               ("share of its time", share_of_time), WALL]),
    **columns.tables(rows, of, fixed, percent),
    "copies": (links("copies"),
               [("case", of("case")), *FINISH, gap(2), ("no copies us", kept_finish("without")), WALL]),
    "steps": (links("steps"),
              [("case", of("case")), *FINISH, gap(3), ("not knowing us", of("unaware_finish_us", fixed(3))), WALL]),
    **{name: (lambda name=name: rows("demands", table=name),
              [("fabric", of("fabric")), ("size", of("size")), *FINISH, gap(3), ("chunks", reported("chunks")), WALL,
               ("engine", reported("engine"))]) for name in ("broadcast", "reduce")},
    **{name: (lambda name=name: rows("demands", table=name),
              [("case", of("case")), *FINISH, gap(3), ("chunks", reported("chunks")), WALL,
               ("engine", reported("engine"))]) for name in ("mixed", "named")},
    "improvement": (lambda: rows("improvement"),
                    [("fabric", of("case")), ("before", of("gap_before", lambda x: percent(x, 4))),
                     ("after", of("gap", lambda x: percent(x, 4))), ("closed", of("closed", lambda x: percent(x, 0))),
                     ("chunks", of("chunks", fixed(0))), ("wall s", of("wall_s", fixed(1)))]),
    "schedules": (linear("schedule"),
                  [("fabric", option("topology")), ("GPUs", reported("gpus")), *FINISH, gap(4), WALL, MEMORY]),
    "damaged": (linear("damaged"),
                [("fabric", option("topology")), *FINISH, gap(2),
                 ("bounds s", lambda row: fixed(2)(row["report"]["wall_parts_s"]["bounds"])), WALL, MEMORY]),
    "columns": (lambda: rows("linear", "flows", what="columns"), comparison("columns", "simplex")),
    "orbits": (lambda: rows("linear", "flows", what="orbits"), comparison("orbits", "whole")),
    "ranks": (linear("ranks"), [("fabric", option("topology")), ("ranks", of("ranks")), gap(2), WALL, MEMORY]),
    "parts": (linear("parts"),
              [("options", lambda row: row["case"].split("--chunks 1")[1].strip() or "-"), ("ranks", of("ranks")),
               ("finish us", reported("finish_us", fixed(1))), gap(2), ("columns", metric("columns", fixed(0))), WALL]),
    "teccl": (linear("teccl"), [("fabric", option("topology")), ("GPUs", reported("gpus")), *FINISH, gap(2), WALL]),
    "sizes": (gaps_of_sizes,
              [("fabric", of("fabric")), ("collective", of("collective")),
               *[(size, of(size, lambda gap: "-" if gap is None else fixed(2)(100 * gap))) for size in SIZES],
               ("longest wall s", of("longest_s", fixed(1)))]),
    "scaling": (lambda: rows("scaling"),
                [("case", of("case")), ("ranks", of("ranks")), ("s", of("replayed_s", fixed(3))),
                 ("efficiency", of("efficiency", fixed(2))), ("own s", of("own_s", fixed(3))),
                 ("uneven s", of("idle_s", fixed(3))), ("network s", of("network_s", fixed(3))), ("limit", of("limit"))]),
    "windows": (lambda: [row for row in rows("rounds") if row["decompose"] == "windows"],
                [("case", lambda row: f"{row['report']['collective']} {row['size']} {row['fabric']} {' '.join(row['options'])}".rstrip()),
                 ("auto us", metric("start_finish_us", fixed(3))), *FINISH, gap(2),
                 ("earlier", lambda row: percent(1 - row["report"]["finish_us"] / row["report"]["metrics"]["start_finish_us"], 3)),
                 ("chunks", lambda row: str(row["report"]["chunks"])), ("rounds", of("rounds")),
                 ("replanted in", lambda row: ", ".join(map(str, row.get("replanting_rounds", []))) or "-"),
                 ("models took part in", lambda row: ", ".join(map(str, row["changing_rounds"])) or "-"),
                 ("transfers changed", of("transfers_changed")), WALL]),
    "in_time": (lambda: rows("in_time"),
                [("fabric", of("case")), ("size", of("size")), ("without us", of("without_us", fixed(3))), *FINISH,
                 ("gap without", of("gap_without", percent)), gap(2), ("(gap + 0.01 %) with / without", of("ratio", fixed(2))),
                 ("rounds", metric("rounds", fixed(0)))]),
    "rank_memory": (lambda: rows("memory"),
                    [("fabric", of("fabric")), ("ranks", of("ranks")), ("sends", of("sends", fixed(0))), ("peak MB", of("peak_MB", fixed(0))),
                     ("of it idle", of("idle_MB", fixed(0))),
                     ("falls as ranks^", lambda row: fixed(2)(row["exponent"]) if row["ranks"] > 1 else "-"), ("digest", of("digest"))]),
    "rounds": (lambda: [row for row in rows("rounds") if row["decompose"] != "windows"],
               [("case", of("case")), ("start us", metric("start_finish_us", fixed(3))), *FINISH, gap(2),
                ("rounds", of("rounds")), ("parts solved", lambda row: str(row["parts"]["solved"])),
                ("changed", of("transfers_changed")), ("wall s", of("wall_s", fixed(1))), MEMORY]),
}


def table(name):
    content, columns = TABLES[name]
    lines = ["| " + " | ".join(heading for heading, _ in columns) + " |", "|" + "---|" * len(columns)]
    for row in content():
        done = any(key in row for key in ("report", "ways", "gain", "route", "worst", "order", "replayed_s", "near", "cells",
                                          "finish_us", "refused", "small_us", "star_us"))
        cells = [show(row) if done else "failed" for _, show in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(names):
    text = README.read_text()
    if names == ["--check"]:
        wrong = [name for name in TABLES if table(name) + f"\n\n<!-- end {name} -->" not in text]
        for name in wrong:
            print(f"{name} differs from its results; run benchmarks/tables.py {name}")
        return 1 if wrong else 0
    if not names or any(name not in TABLES for name in names):
        print(__doc__, "Tables:", ", ".join(TABLES), file=sys.stderr)
        return 64
    commit = subprocess.check_output(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], text=True).strip()
    for name in names:
        filled = f"<!-- {name} -->\nMeasured at {commit}.\n\n{table(name)}\n\n<!-- end {name} -->"
        text, count = re.subn(rf"<!-- {name} -->.*?<!-- end {name} -->", lambda _: filled, text, flags=re.S)
        if count != 1:
            print(f"{README}: the place of {name} has to be marked once", file=sys.stderr)
            return 65
    README.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
