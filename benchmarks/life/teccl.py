"""TE-CCL's remaining tables and figures (targets/teccl_other.md) beside what Rondo makes of the same questions.

Its two internal fabrics are not public. Stand-ins: chassis of 4 GPUs in a ring, all with an uplink (Internal 1), and of 2 GPUs
(Internal 2), with the published latencies (0.6 us, 0.75 us to the switch) and this generator's bandwidths.
"""

from failures import cpu_s

NO_LATENCY = ["--scale-latency", "all:1e-9"]
INTERNAL = {1: "star:chassis={},gpus=4,intra=ring,uplinks=4,intra_latency_us=0.6,uplink_latency_us=0.75",
            2: "star:chassis={},gpus=2,intra=ring,uplinks=2,intra_latency_us=0.6,uplink_latency_us=0.75"}
TABLE_7 = [  # chunks, epochs of 1 us, SCCL s, TE-CCL s
    ("allgather", 1, 2, 0.3, 0.09), ("allgather", 2, 3, 0.7, 0.07), ("allgather", 3, 4, 1.8, 0.19),
    ("allgather", 4, 5, 4.1, 1.45), ("allgather", 5, 6, 11.2, 8.96), ("allgather", 6, 7, 27.7, 50.57),
    ("alltoall", 1, 3, 8.8, 0.11), ("alltoall", 3, 8, None, 0.18), ("alltoall", 8, 30, None, 1.88)]


def two_chassis():
    """Figures 9 to 11: name, fabric, options."""
    return [("Internal 1, no latency", INTERNAL[1].format(2), NO_LATENCY), ("Internal 1", INTERNAL[1].format(2), []),
            ("Internal 2", INTERNAL[2].format(2), []), ("DGX1", "dgx1", [])]


def solved(runs, *words):
    """The report with the processor time of the whole command on one rank."""
    begin = cpu_s()
    report = runs.solve("teccl", *words, ranks=1)
    return report and {**report, "cpu_s": cpu_s() - begin}


def table_7(runs):
    """Chunks of 25 KB on a DGX1 without latency; an epoch is a chunk's time on a link of 25 GB/s, 1 us."""
    for collective, chunks, epochs, sccl_s, teccl_s in TABLE_7:
        case = f"{collective} ({chunks},{epochs})"
        if not runs.wants("teccl_7", case):
            continue
        words = ["--topology", "dgx1", *NO_LATENCY, "--collective", collective, "--size", f"{200 * chunks}KB", "--chunks", str(chunks)]
        auto = solved(runs, *words)
        exact = solved(runs, *words, "--engine", "milp") if chunks <= (3 if collective == "allgather" else 1) else None
        if auto:
            # Of 8 chunks 30 is the horizon; section 6.1 has 21 us.
            runs.add("teccl_7", case, collective=collective, chunks=chunks, epochs=epochs, sccl_s=sccl_s, teccl_s=teccl_s,
                     teccl_us=21 if epochs == 30 else epochs,
                     finish_us=auto["finish_us"], lower_bound_us=auto["lower_bound_us"], cpu_s=auto["cpu_s"], engine=auto["engine"],
                     milp_us=exact and exact["finish_us"], milp_cpu_s=exact and exact["cpu_s"])


def copies(runs):
    """Figure 9. Without copies each destination gets data of its own: AllToAll of the same size."""
    for name, fabric, options in two_chassis():
        for size in ("16KB", "1MB", "210MB"):
            case = f"{name}, {size}"
            if not runs.wants("teccl_9", case):
                continue
            words = ["--topology", fabric, *options, "--size", size, "--gap", "1%"]
            copied, apart = (solved(runs, *words, "--collective", collective) for collective in ("allgather", "alltoall"))
            if copied and apart:
                published = {"Internal 2": -0.125}.get(name, -0.5) if size == "210MB" else None
                runs.add("teccl_9", case, fabric=name, size=size, finish_us=copied["finish_us"], without_us=apart["finish_us"],
                         without_bound_us=apart["lower_bound_us"], change=copied["finish_us"] / apart["finish_us"] - 1,
                         published=published)


def epochs(runs):
    """Figure 10: epochs of the fastest and of the slowest link; AllToAll by flows over time, AllGather by A*."""
    flows = ("alltoall", ["lp", "--epoch-spacing", "uniform"])
    rounds = ("allgather", ["rounds", "--start", "none"])
    for name, fabric, options, parts in [("NDv2", "ndv2-2", [], [rounds]), ("DGX1", "dgx1", [], [flows, rounds]),
                                         *((*each, [flows, rounds]) for each in two_chassis()[1:3])]:
        for collective, engine in parts:
            case = f"{name} {collective}"
            if not runs.wants("teccl_10", case):
                continue
            words = ["--topology", fabric, *options, "--collective", collective, "--size", "16MB", "--chunks", "1", "--engine", *engine]
            small, large = (solved(runs, *words, "--epoch", epoch) for epoch in ("fastest_link", "slowest_link"))
            if small and large:
                model = "model_finish_us" if "model_finish_us" in small["metrics"] else None
                of = lambda report: report["metrics"][model] if model else report["finish_us"]
                runs.add("teccl_10", case, fabric=name, collective=collective, engine=engine[0], small_us=of(small), large_us=of(large),
                         small_cpu_s=small["cpu_s"], large_cpu_s=large["cpu_s"])


def buffers(runs):
    """Figure 11: what relays may hold. In AllGather nobody only passes on, so AllToAll."""
    published = {"Internal 1, no latency": 0.61, "Internal 1": -0.2846, "Internal 2": 0.0023, "DGX1": 0.71}
    for name, fabric, options in two_chassis():
        case = name
        if not runs.wants("teccl_11", case):
            continue
        words = ["--topology", fabric, *options, "--collective", "alltoall", "--size", "16MB", "--chunks", "4"]
        free = solved(runs, *words)
        gpus = free["gpus"] if free else 1
        chunk = 16_000_000 // gpus // 4
        held = {n: solved(runs, *words, "--relay-memory", f"{n * chunk}B") for n in (2, 4)}
        if free and all(held.values()):
            runs.add("teccl_11", case, fabric=name, finish_us=free["finish_us"], lower_bound_us=free["lower_bound_us"], cpu_s=free["cpu_s"],
                     peak_chunks=free["peak_relay_bytes"] / chunk, two_us=held[2]["finish_us"], two_cpu_s=held[2]["cpu_s"],
                     four_us=held[4]["finish_us"], four_cpu_s=held[4]["cpu_s"], published_solver_gain=published[name])


def a_star(runs):
    """Section 6.4: A* alone against the least number of the same epochs, and against `auto`."""
    published = {(1, True): (86.61, 346, 0.10), (2, True): (263.29, 4392, 0.06), (1, False): (137.02, 363.4, 0.20), (2, False): (901.25, 3047, 0.08)}
    for (chunks, none), (star_s, opt_s, worse) in published.items():
        case = f"Internal 2, {chunks} chunks, {'no latency' if none else 'latency'}"
        if not runs.wants("teccl_6.4", case):
            continue
        words = ["--topology", INTERNAL[2].format(2), *(NO_LATENCY if none else []), "--collective", "allgather", "--size",
                 f"{100 * chunks}KB", "--chunks", str(chunks)]
        star = solved(runs, *words, "--engine", "rounds", "--start", "none")
        optimum = solved(runs, *words, "--engine", "milp")
        auto = solved(runs, *words)
        if star and optimum and auto:
            runs.add("teccl_6.4", case, star_us=star["finish_us"], star_cpu_s=star["cpu_s"], optimum_us=optimum["finish_us"],
                     optimum_cpu_s=optimum["cpu_s"], proven=optimum["metrics"].get("proven_optimal_on_grid") == 1,
                     auto_us=auto["finish_us"], auto_cpu_s=auto["cpu_s"], lower_bound_us=auto["lower_bound_us"],
                     teccl_star_s=star_s, teccl_optimum_s=opt_s, teccl_worse=worse)


def large(runs):
    """Table 4, AllGather; output of more than 16 MB."""
    for internal, gpus, seconds in ((1, 64, 3000), (1, 128, 7 * 3600), (2, 128, 1300), (2, 256, 2.8 * 3600)):
        case = f"Internal {internal}, {gpus} GPUs"
        if not runs.wants("teccl_4", case):
            continue
        fabric = INTERNAL[internal].format(gpus // (4 if internal == 1 else 2))
        report = solved(runs, "--topology", fabric, "--collective", "allgather", "--size", "32MB", "--gap", "1%")
        if report:
            runs.add("teccl_4", case, gpus=gpus, finish_us=report["finish_us"], lower_bound_us=report["lower_bound_us"], gap=report["gap"],
                     cpu_s=report["cpu_s"], engine=report["engine"], teccl_s=seconds)


def all_of(runs):
    for part in (table_7, copies, epochs, buffers, a_star, large):
        part(runs)
