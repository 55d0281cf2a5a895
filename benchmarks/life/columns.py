"""The columns of the tables of benchmark `life` (../tables.py)."""

import failures


def change(key, of_key):
    return lambda row: f"{100 * (row[key] / row[of_key] - 1):+.1f} %"


def times(key, of_key):
    """How many times as large one figure is as the other; '-' where there is none."""
    return lambda row: "-" if row.get(key) is None else f"{row[key] / row[of_key]:.3f}"


def tables(rows, of, fixed, percent):
    """As TABLES of ../tables.py, whose functions these are."""

    def life(table):
        return lambda: rows("life", table=table)

    return {
        "tenants": (life("tenants"),
                    [("case", of("case")), ("finish us", of("finish_us", fixed(1))), ("gap", of("gap", percent)),
                     ("blind, times", times("blind_finish_us", "finish_us")),
                     ("one after the other, times", times("after_finish_us", "finish_us")),
                     ("weighted us", of("weighted_us", fixed(0))), ("its gap", of("weighted_gap", percent)),
                     ("blind, times", times("blind_weighted_us", "weighted_us")),
                     ("one after the other, times", times("after_weighted_us", "weighted_us")),
                     ("most slowed down", of("largest_slowdown", fixed(3))),
                     ("ends first", lambda row: min(row["ends"], key=lambda end: end[2])[0]), ("engine", of("engine")),
                     ("wall s", of("wall_s", fixed(1)))]),
        "memory": (life("memory"),
                   [("fabric", of("fabric")), ("chunks of memory", of("memory_chunks", lambda n: "any" if n is None else str(n))),
                    ("finish us", of("finish_us", fixed(1))), ("bound us", of("lower_bound_us", fixed(1))),
                    ("gap", lambda row: "-" if "refused" in row else percent(row["gap"])),
                    ("held at most, chunks", lambda row: "-" if "refused" in row else fixed(1)(row["peak_relay_bytes"] / row["chunk_bytes"])),
                    ("engine", lambda row: row.get("engine", "no way"))]),
        "stragglers": (life("stragglers"),
                       [("fabric", of("fabric")), ("collective", of("collective")), ("late us", of("late_us")),
                        ("finish us", of("finish_us", fixed(1))), ("bound us", of("lower_bound_us", fixed(1))), ("gap", of("gap", percent)),
                        ("not knowing us", lambda row: fixed(1)(row["unaware_us"]) + ("" if row["unaware_in_order"] else ", later as a whole")),
                        ("times", times("unaware_us", "finish_us")), ("engine", of("engine"))]),
        "failures": (lambda: failures.summaries(rows("life", table="failures")),
                     [("collective", of("collective")), ("failures", of("failures")), ("repaired", of("repaired")),
                      ("nothing left", of("nothing_left")), ("cut off", of("refused")), ("median gap of the rest", of("gap", percent)),
                      ("worst", of("worst_gap", percent)), ("all ends, times undisturbed", of("later", fixed(3))),
                      ("rest, times anew", of("of_anew", fixed(3))), ("worst", of("worst_of_anew", fixed(3))),
                      ("no later than anew", of("sooner")), ("median CPU s", of("cpu_s", fixed(2))), ("most", of("worst_cpu_s", fixed(2))),
                      ("anew, CPU s", of("anew_cpu_s", fixed(2)))]),
        "single_failures": (life("single failures"),
                            [("case", of("case")), ("failures", of("failures")), ("cut off", of("refused")),
                             ("undisturbed us", of("finish_us", fixed(1))), ("latest us", of("latest_us", fixed(1))),
                             ("median gap of the rest", of("gap", percent)), ("worst", of("worst_gap", percent)),
                             ("slowest s", of("slowest_s", fixed(2))), ("CPU s", of("cpu_s", fixed(0))), ("wall s", of("wall_s", fixed(0)))]),
        "teccl_7": (life("teccl_7"),
                    [("(chunks, epochs)", of("case")), ("TE-CCL us", of("teccl_us", fixed(1))), ("auto us", of("finish_us", fixed(3))),
                     ("bound us", of("lower_bound_us", fixed(3))), ("engine", of("engine")), ("milp us", of("milp_us", fixed(3))),
                     ("SCCL s", of("sccl_s", fixed(1))), ("TE-CCL s", of("teccl_s", fixed(2))), ("auto CPU s", of("cpu_s", fixed(2))),
                     ("milp CPU s", of("milp_cpu_s", fixed(2)))]),
        "teccl_9": (life("teccl_9"),
                    [("fabric", of("fabric")), ("size", of("size")), ("with copies us", of("finish_us", fixed(2))),
                     ("without us", of("without_us", fixed(2))), ("bound without us", of("without_bound_us", fixed(2))),
                     ("change", change("finish_us", "without_us")),
                     ("TE-CCL", lambda row: "-" if row["published"] is None else f"{100 * row['published']:+.1f} %")]),
        "teccl_10": (life("teccl_10"),
                     [("fabric", of("fabric")), ("collective", of("collective")), ("engine", of("engine")), ("small us", of("small_us", fixed(2))),
                      ("large us", of("large_us", fixed(2))), ("small against large", change("small_us", "large_us")),
                      ("small CPU s", of("small_cpu_s", fixed(2))), ("large CPU s", of("large_cpu_s", fixed(2))),
                      ("small against large", change("small_cpu_s", "large_cpu_s"))]),
        "teccl_11": (life("teccl_11"),
                     [("fabric", of("fabric")), ("any us", of("finish_us", fixed(1))), ("bound us", of("lower_bound_us", fixed(1))),
                      ("holds, chunks", of("peak_chunks", fixed(0))), ("4 chunks us", of("four_us", fixed(1))), ("2 chunks us", of("two_us", fixed(1))),
                      ("CPU s: any", of("cpu_s", fixed(2))), ("4", of("four_cpu_s", fixed(2))), ("2", of("two_cpu_s", fixed(2))),
                      ("memory against 4", lambda row: f"{100 * (1 - row['cpu_s'] / row['four_cpu_s']):+.0f} %"),
                      ("TE-CCL", lambda row: f"{100 * row['published_solver_gain']:+.0f} %")]),
        "teccl_6.4": (life("teccl_6.4"),
                      [("case", of("case")), ("A* us", of("star_us", fixed(2))), ("least epochs us", of("optimum_us", fixed(2))),
                       ("proven", of("proven", lambda yes: "yes" if yes else "no")), ("auto us", of("auto_us", fixed(2))), ("bound us", of("lower_bound_us", fixed(2))),
                       ("A* later", change("star_us", "optimum_us")), ("TE-CCL's", lambda row: f"{100 * row['teccl_worse']:+.0f} %"),
                       ("A* CPU s", of("star_cpu_s", fixed(2))), ("least epochs CPU s", of("optimum_cpu_s", fixed(2))),
                       ("TE-CCL A* s", of("teccl_star_s", fixed(0))), ("its optimum s", of("teccl_optimum_s", fixed(0)))]),
        "teccl_4": (life("teccl_4"),
                    [("case", of("case")), ("finish us", of("finish_us", fixed(1))), ("bound us", of("lower_bound_us", fixed(1))), ("gap", of("gap", percent)),
                     ("engine", of("engine")), ("CPU s", of("cpu_s", fixed(1))), ("TE-CCL's A*, s", of("teccl_s", fixed(0)))]),
    }
