"""The cases of version 1: rules 1 to 7, form, demand, finish, certificates. `cases.valid` takes the finish from the schedule,
where it stands as a formula."""
from case_writer import ABSENT, US, Fabric, changed, chunk, full, line, schedule, send


def star(stores=False, **keys):
    """0 -> switch 3 -> {1, 2}: in at 2 GB/s, 0.5 us; out at 1 GB/s (link 1) and 2 GB/s (link 2), 0.25 us."""
    fabric = Fabric(3)
    switch = fabric.switch(**keys, **({"forwarding": "store_and_forward"} if stores else {}))
    fabric.link(0, switch, 2.0, 0.5)
    fabric.link(switch, 1, 1.0, 0.25)
    fabric.link(switch, 2, 2.0, 0.25)
    return fabric


def rule1(cases):
    first, second = send(0, 0, 0, 10), send(0, 1, 10.5, 10)
    hops = schedule(line(3), [chunk(0, [2])], [first, second], 2 * (10 + 0.5))
    cases.valid("rule1-two-hops", hops)
    cases.invalid("rule1-end-too-early", "1", changed(hops, ["sends", "end_us", 1], 20.4))
    cases.invalid("rule1-arrival-too-late", "1", changed(hops, ["sends", "arrival_us", 1], 21.1))
    cases.valid("rule1-end-within-the-tolerance", changed(hops, ["sends", "end_us", 0], 10 + 5e-7))
    two = [chunk(0, [1]), chunk(0, [1], 5)]
    cases.valid("rule1-one-after-another", schedule(line(2, 3.0), two, [send(0, 0, 0, 10), send(1, 0, 10, 5)], 10 + 5 + 3))
    cases.invalid("rule1-overlap", "1", schedule(line(2, 3.0), two, [send(0, 0, 0, 10), send(1, 0, 9.9, 5)], 9.9 + 5 + 3))
    cases.invalid("rule1-same-send-twice", "1", schedule(line(2, 3.0), two[:1], [send(0, 0, 0, 10)] * 2, 10 + 3))
    short = [chunk(0, [1], 4e-7) for _ in range(10)]
    cases.valid("rule1-many-short-sends", schedule(line(2, 0.0), short, [send(c, 0, c * 4e-7, 4e-7) for c in range(10)], 10 * 4e-7))
    cases.invalid("rule1-many-short-sends-at-once", "1", schedule(line(2, 0.0), short, [send(c, 0, 0, 4e-7) for c in range(10)], 4e-7))
    shared = Fabric(4)
    leaf, spine = shared.switch(), shared.switch()
    for src, dst, gbps in ((0, leaf, 1.0), (1, leaf, 1.0), (leaf, spine, 2.0), (spine, 2, 1.0), (spine, 3, 1.0)):
        shared.link(src, dst, gbps)
    cases.valid("rule1-slow-transfers-share-a-fast-link", schedule(shared, [chunk(0, [2]), chunk(1, [3])], [
        send(0, 0, 0, 10), send(0, 2, 0, 10), send(0, 3, 0, 10), send(1, 1, 0, 10), send(1, 2, 0, 10), send(1, 4, 0, 10)], 10.0))


def rule2(cases):
    first = send(0, 0, 0, 10)
    cases.invalid("rule2-sent-on-before-the-arrival", "2",
                  schedule(line(3), [chunk(0, [2])], [first, send(0, 1, 10, 10)], 10 + 10 + 0.5))
    cases.invalid("rule2-never-held", "2", schedule(line(3), [chunk(0, [2])], [send(0, 1, 10.5, 10)], 21.0))
    cases.valid("rule2-waits-in-a-gpu", schedule(line(3), [chunk(0, [2])], [first, send(0, 1, 50, 10)], 50 + 10 + 0.5))
    cases.valid("rule2-ready", schedule(line(2), [chunk(0, [1], ready=4.0)], [send(0, 0, 4, 10)], 4 + 10 + 0.5))
    cases.invalid("rule2-before-ready", "2", schedule(line(2), [chunk(0, [1], ready=4.0)], [send(0, 0, 3.9, 10)], 3.9 + 10 + 0.5))
    tiny = 1e-9
    circle = Fabric(3)
    for src, dst in ((0, 1), (1, 2), (2, 1)):
        circle.link(src, dst)
    rest = [send(0, 1, 5, tiny), send(0, 2, 5, tiny)]
    cases.invalid("rule2-circle-without-a-cause", "2", schedule(circle, [chunk(0, [1, 2], tiny)], rest, 5 + tiny))
    cases.valid("rule2-circle-with-a-cause", schedule(circle, [chunk(0, [1, 2], tiny)], rest + [send(0, 0, 5, tiny)], 5 + tiny))
    # The last hop has the lowest number.
    cases.valid("rule2-chain-at-one-instant", schedule(
        line(4, 0.0, backwards=True), [chunk(3, [0], tiny)], [send(0, l, 3, tiny) for l in (2, 1, 0)], 3 + tiny))
    cases.invalid("rule2-chain-without-its-first-hop", "2", schedule(
        line(4, 0.0, backwards=True), [chunk(3, [0], tiny)], [send(0, l, 3, tiny) for l in (1, 0)], 3 + tiny))
    back = line(2, 0.0)
    back.link(1, 0)
    cases.valid("rule2-returned-to-its-origin",
                schedule(back, [chunk(0, [1], 1)], [send(0, 0, 0, 1), send(0, 1, 1, 1), send(0, 0, 1.5, 1)], 1.0))


def rule3(cases):
    one = [chunk(0, [1])]
    into = send(0, 0, 0, 5)  # at 2 GB/s; there at 5.5
    cases.valid("rule3-sent-on-at-the-arrival", schedule(star(True), one, [into, send(0, 1, 5.5, 10)], 5 + 0.5 + 10 + 0.25))
    cases.invalid("rule3-sent-on-before-the-arrival", "3", schedule(star(True), one, [into, send(0, 1, 5.4, 10)], 15.65))
    cases.invalid("rule3-waits-without-a-buffer", "3", schedule(star(True), one, [into, send(0, 1, 6, 10)], 16.25))
    cases.valid("rule3-waits-in-a-buffer", schedule(star(True, buffer_bytes=10 * US), one, [into, send(0, 1, 100, 10)], 100 + 10 + 0.25))
    cases.invalid("rule3-buffer-too-small", "3",
                  schedule(star(True, buffer_bytes=10 * US - 1), one, [into, send(0, 1, 100, 10)], 110.25))
    two = [chunk(0, [1]), chunk(0, [1])]

    def waiting(leaves):  # chunk 1 is there at 10.5
        return [into, send(1, 0, 5, 5), send(0, 1, leaves, 10), send(1, 1, 30, 10)]
    cases.invalid("rule3-two-chunks-wait", "3", schedule(star(True, buffer_bytes=15 * US), two, waiting(11), 30 + 10 + 0.25))
    cases.valid("rule3-one-leaves-as-the-other-comes", schedule(star(True, buffer_bytes=15 * US), two, waiting(10.5), 30 + 10 + 0.25))
    cases.valid("rule3-room-for-two", schedule(star(True, buffer_bytes=20 * US), two, waiting(11), 30 + 10 + 0.25))
    copies = [chunk(0, [1, 2]), chunk(0, [1])]

    def twice(leaves):
        return [into, send(0, 1, 5.5, 10), send(0, 2, leaves, 5), send(1, 0, 5, 5), send(1, 1, 20, 10)]
    cases.invalid("rule3-waits-for-its-last-copy", "3", schedule(star(True, buffer_bytes=10 * US), copies, twice(12), 20 + 10 + 0.25))
    cases.valid("rule3-last-copy-in-time", schedule(star(True, buffer_bytes=10 * US), copies, twice(10.5), 20 + 10 + 0.25))
    cases.invalid("rule3-copied-by-a-switch-that-may-not", "3", schedule(
        star(True, multicast=False), [chunk(0, [1, 2])], [into, send(0, 1, 5.5, 10), send(0, 2, 5.5, 5)], 15.75))
    tiny = 1e-9
    circle = Fabric(2)
    s, t = (circle.switch(forwarding="store_and_forward", buffer_bytes=10 * US) for _ in range(2))
    for src, dst in ((s, t), (t, s), (s, 1), (0, s)):
        circle.link(src, dst)
    rest = [send(0, l, 5, tiny) for l in range(3)]
    cases.invalid("rule3-circle-of-storing-switches", "3", schedule(circle, [chunk(0, [1], tiny)], rest, 5 + tiny))
    cases.valid("rule3-circle-with-a-cause", schedule(circle, [chunk(0, [1], tiny)], rest + [send(0, 3, 5, tiny)], 5 + tiny))
    both = Fabric(2)
    stores, cuts = both.switch(forwarding="store_and_forward"), both.switch()
    for src, dst, gbps in ((0, stores, 1.0), (stores, cuts, 2.0), (cuts, 1, 4.0)):
        both.link(src, dst, gbps, 1.0)
    cases.valid("rule3-ends-a-cut-through-section", schedule(
        both, one, [send(0, 0, 0, 10), send(0, 1, 11, 5), send(0, 2, 12, 5)], (10 + 1) + (1 + 5 + 1)))


def rule4(cases):
    one = [chunk(0, [1])]
    good = [send(0, 0, 0, 10), send(0, 1, 0.5, 10)]
    cases.valid("rule4-least-bandwidth", schedule(star(), one, good, 0.5 + 10 + 0.25))
    cases.valid("rule4-fast-links", schedule(star(), [chunk(0, [2])], [send(0, 0, 0, 5), send(0, 2, 0.5, 5)], 0.5 + 5 + 0.25))
    cases.invalid("rule4-each-link-at-its-own-rate", "1", schedule(star(), one, [send(0, 0, 0, 5), good[1]], 10.75))
    cases.invalid("rule4-slower-than-its-links", "1",
                  schedule(star(), [chunk(0, [2])], [send(0, 0, 0, 10), send(0, 2, 0.5, 10)], 10.75))
    cases.invalid("rule4-nothing-enters", "4", schedule(star(), one, good[1:], 10.75))
    cases.invalid("rule4-leaves-early-as-well", "4", schedule(star(), [chunk(0, [1, 2])], good + [send(0, 2, 0.4, 5)], 10.75))
    far = Fabric(3)
    s, t = far.switch(), far.switch()
    for src, dst, gbps, latency in ((0, s, 4.0, 1.0), (s, t, 3.0, 2.0), (t, 1, 2.0, 3.0), (t, 2, 1.0, 4.0)):
        far.link(src, dst, gbps, latency)
    cases.valid("rule4-two-switches", schedule(far, [chunk(0, [1, 2], 12)], [
        send(0, 0, 0, 12), send(0, 1, 1, 12), send(0, 2, 3, 12), send(0, 3, 3, 12)], 1 + 2 + 12 + 4))
    loop = Fabric(2)
    s, t = loop.switch(), loop.switch()
    for src, dst in ((0, s), (s, t), (t, s), (s, 1)):
        loop.link(src, dst)
    round_it = [send(0, 1, 5, 10), send(0, 2, 5, 10), send(0, 3, 5, 10)]
    cases.invalid("rule4-circle-of-switches", "4", schedule(loop, one, round_it[:2], 15.0))
    cases.valid("rule4-detour", schedule(loop, one, round_it + [send(0, 0, 5, 10)], 5 + 10.0))

    def pairs(in0, in1, out0, out1):
        fabric = Fabric(3)
        switch = fabric.switch(multicast=False)
        for src, dst, gbps in ((0, switch, in0), (0, switch, in1), (switch, 1, out0), (switch, 2, out1)):
            fabric.link(src, dst, gbps)
        return fabric

    def crossing(*lengths):
        return [send(0, l, 0, length) for l, length in enumerate(lengths)]
    ways = [chunk(0, [1, 2])]
    cases.valid("rule4-fast-with-fast", schedule(pairs(2.0, 1.0, 2.0, 1.0), ways, crossing(5, 10, 5, 10), 10.0))
    cases.valid("rule4-fast-with-slow", schedule(pairs(2.0, 1.0, 2.0, 1.0), ways, crossing(10, 10, 10, 10), 10.0))
    cases.invalid("rule4-no-slow-link-for-one", "4", schedule(pairs(2.0, 2.0, 2.0, 1.0), ways, crossing(10, 10, 10, 10), 10.0))


def rule5(cases):
    good = [send(0, 0, 0, 5), send(0, 2, 0.5, 5)]
    cases.invalid("rule5-does-not-leave", "5", schedule(star(), [chunk(0, [2])], good + [send(0, 0, 20, 5)], 5.75))
    cases.invalid("rule5-leaves-late", "5", schedule(star(), [chunk(0, [2])], [good[0], send(0, 2, 0.6, 5)], 5.85))
    copies = [send(0, 0, 0, 10), send(0, 1, 0.5, 10), send(0, 2, 0.5, 10)]
    cases.valid("rule5-multicast", schedule(star(), [chunk(0, [1, 2])], copies, 0.5 + 10 + 0.25))
    cases.invalid("rule5-cannot-multicast", "5", schedule(star(multicast=False), [chunk(0, [1, 2])], copies, 10.75))
    cases.valid("rule5-twice-through-the-switch", schedule(star(multicast=False), [chunk(0, [1, 2])], [
        send(0, 0, 0, 10), send(0, 1, 0.5, 10), send(0, 0, 10, 5), send(0, 2, 10.5, 5)], 10 + 0.5 + 5 + 0.25))
    stored = [send(0, 0, 0, 5), send(0, 1, 5.5, 10), send(0, 2, 5.5, 5)]
    cases.valid("rule5-copied-by-a-storing-switch", schedule(star(True), [chunk(0, [1, 2])], stored, 5.5 + 10 + 0.25))
    cases.invalid("rule5-second-arrival-does-not-leave", "5",
                  schedule(star(True), [chunk(0, [1, 2])], stored + [send(0, 0, 5, 5)], 15.75))


def rule6(cases):
    def nic(gbps):
        fabric = Fabric(3)
        fabric.share(gbps, fabric.link(0, 1, 1.0), fabric.link(0, 2, 2.0))
        return fabric
    two = [chunk(0, [1]), chunk(0, [2])]
    at_once = [send(0, 0, 0, 10), send(1, 1, 0, 5)]
    cases.valid("rule6-within-the-sum", schedule(nic(3.0), two, at_once, 10.0))
    cases.invalid("rule6-beyond-the-sum", "6", schedule(nic(2.5), two, at_once, 10.0))
    cases.valid("rule6-one-after-another", schedule(nic(2.5), two, [send(0, 0, 0, 10), send(1, 1, 10, 5)], 10 + 5.0))
    cases.invalid("rule6-one-link-beyond-the-sum", "6", schedule(nic(1.5), two[1:], [send(0, 1, 0, 5)], 5.0))
    cases.invalid("rule6-short-overlap", "6", schedule(nic(2.5), two, [send(0, 0, 0, 10), send(1, 1, 9.5, 5)], 14.5))
    for gbps in (2.0, 1.9):
        fabric = Fabric(3)
        switch = fabric.switch()
        fabric.link(0, switch, 5.0)
        fabric.link(switch, 1, 1.0)
        fabric.link(0, 2, 1.0)
        fabric.share(gbps, 0, 2)
        data = schedule(fabric, [chunk(0, [1, 2])], [send(0, l, 0, 10) for l in range(3)], 10.0)
        if gbps == 2.0:
            cases.valid("rule6-rate-lowered-by-a-switch", data)
        else:
            cases.invalid("rule6-lowered-rates-beyond-the-sum", "6", data)


def rule7(cases):
    first, second = send(0, 0, 0, 10), send(0, 1, 10.5, 10)
    cases.invalid("rule7-one-destination-lacks-it", "7", schedule(line(3), [chunk(0, [1, 2])], [first], 10.5))
    cases.invalid("rule7-no-sends", "7", schedule(line(3), [chunk(0, [2])], [], 0.0))
    halves = [chunk(0, [2], 5), chunk(0, [2], 5)]
    sends = [send(0, 0, 0, 5), send(1, 0, 5, 5), send(0, 1, 5.5, 5), send(1, 1, 10.5, 5)]
    cases.valid("rule7-two-chunks", schedule(line(3), halves, sends, (5 + 5 + 0.5) + (5 + 0.5)))
    cases.invalid("rule7-one-chunk-is-missing", "7", schedule(line(3), halves, sends[:3], 11.0))
    cases.valid("rule7-earliest-arrival", schedule(line(3), [chunk(0, [1])], [first, second, send(0, 0, 30, 10)], 10 + 0.5))
    good = schedule(line(3), [chunk(0, [2])], [first, second], 2 * (10 + 0.5))
    cases.invalid("finish-claimed-too-early", "finish", changed(good, ["finish_us"], 20.0))
    cases.invalid("finish-claimed-too-late", "finish", changed(good, ["finish_us"], 21.1))


def form(cases):
    good = schedule(line(3), [chunk(0, [2])], [send(0, 0, 0, 10), send(0, 1, 10.5, 10)], 21.0)
    unsorted = changed(changed(good, ["sends", "link"], [1, 0]), ["sends", "start_us"], [10.5, 0])
    unsorted = changed(changed(unsorted, ["sends", "end_us"], [20.5, 10]), ["sends", "arrival_us"], [21.0, 10.5])
    cases.invalid("format-sends-not-sorted", "format", unsorted)
    cases.invalid("format-unknown-key", "format", changed(good, ["topology", "links", 0, "color"], "red"))
    cases.invalid("format-missing-column", "format", changed(good, ["sends", "arrival_us"], ABSENT))
    cases.invalid("format-no-such-chunk", "format", changed(good, ["sends", "chunk", 1], 1))
    cases.invalid("format-no-such-link", "format", changed(good, ["sends", "link", 1], 7))
    cases.invalid("format-negative-start", "format", changed(good, ["sends", "start_us", 0], -1.0))
    cases.invalid("format-bandwidth-not-positive", "format", changed(good, ["topology", "links", 0, "bandwidth_GBps"], 0.0))
    cases.invalid("format-link-to-its-own-end", "format", changed(good, ["topology", "links", 0, "dst"], 0))
    cases.invalid("format-version-of-the-future", "format", changed(good, ["version"], 99))
    cases.invalid("format-destination-twice", "format", changed(good, ["chunks", "destinations", 0], [2, 2]))
    cases.invalid("format-columns-of-other-lengths", "format", changed(good, ["sends", "op"], [0]))
    cases.invalid("format-chunk-bytes-of-another-length", "format", changed(good, ["chunk_bytes"], [10 * US, 10 * US]))
    cases.invalid("format-unknown-collective", "format", changed(good, ["collective"], "scan"))
    figures = schedule(line(3), [chunk(0, [2])], [send(0, 0, 0, 10), send(0, 1, 10.5, 10)], 21.0,
                       bound=(1.0, {"kind": "latency", "source": 0, "destination": 2}))
    figures = changed(changed(figures, ["algorithm_bandwidth_GBps"], 10 * US / 21.0 / 1000), ["gap"], 21.0 / 1.0 - 1)
    cases.valid("format-figures-for-people", figures)
    cases.invalid("format-wrong-algorithm-bandwidth", "format", changed(figures, ["algorithm_bandwidth_GBps"], 0.5))
    cases.invalid("format-wrong-gap", "format", changed(figures, ["gap"], 19.0))


def collectives(cases):
    """On GPUs that all have links to each other; 1 GB/s, 0.5 us."""
    def direct(gpus, chunks):
        return [send(c, part["sources"][0] * (gpus - 1) + g - (g > part["sources"][0]), 0, 10)
                for c, part in enumerate(chunks) for g in part["to"]]
    gather_all = [chunk(g, [h for h in range(3) if h != g]) for g in range(3)]
    finish = 10 + 0.5
    allgather = schedule(full(3), gather_all, direct(3, gather_all), finish, "allgather", 3 * 10 * US)
    cases.valid("demand-allgather", allgather)
    cases.invalid("demand-allgather-of-another-size", "demand", changed(allgather, ["size_bytes"], 20 * US))
    cases.invalid("demand-allgather-without-a-part", "demand",
                  schedule(full(3), gather_all[:2], direct(3, gather_all[:2]), finish, "allgather", 3 * 10 * US))
    pairs = [chunk(g, [h]) for g in range(3) for h in range(3) if h != g]
    cases.valid("demand-alltoall", schedule(full(3), pairs, direct(3, pairs), finish, "alltoall", 3 * 10 * US))
    broadcast = schedule(full(3), [chunk(1, [0, 2])], direct(3, [chunk(1, [0, 2])]), finish, "broadcast", 10 * US)
    cases.valid("demand-broadcast", broadcast)
    cases.invalid("demand-broadcast-leaves-one-out", "demand",
                  schedule(full(3), [chunk(1, [0])], direct(3, [chunk(1, [0])]), finish, "broadcast", 10 * US))
    scatter = [chunk(2, [0]), chunk(2, [1])]
    cases.valid("demand-scatter", schedule(full(3), scatter, direct(3, scatter), finish, "scatter", 3 * 10 * US))
    gather = [chunk(0, [1]), chunk(2, [1])]
    cases.valid("demand-gather", schedule(full(3), gather, direct(3, gather), finish, "gather", 3 * 10 * US))
    cases.invalid("demand-gather-counts-the-roots-part", "demand",
                  schedule(full(3), gather, direct(3, gather), finish, "gather", 2 * 10 * US))
    cases.invalid("demand-custom-size-is-not-the-sum", "demand",
                  schedule(full(3), gather, direct(3, gather), finish, "custom", 3 * 10 * US))


def certificates(cases):
    hops = ([chunk(0, [2])], [send(0, 0, 0, 10), send(0, 1, 10.5, 10)], 2 * (10 + 0.5))

    def bounded(us, **certificate):
        return schedule(line(3), *hops, bound=(us, certificate))
    cases.valid("certificate-latency", bounded(2 * 0.5, kind="latency", source=0, destination=2))
    cases.invalid("certificate-latency-overstated", "certificate", bounded(1.1, kind="latency", source=0, destination=2))
    cases.invalid("certificate-latency-of-no-pair", "certificate", bounded(0.5, kind="latency", source=0, destination=1))
    # S = {0, 1}: 10 us over the last link, which GPU 1 may use at once, and 0.5 us on it.
    cases.valid("certificate-cut", bounded(10 + 0.5, kind="cut", nodes=[0, 1], bytes=10 * US))
    cases.invalid("certificate-cut-of-other-bytes", "certificate", bounded(20 + 0.5, kind="cut", nodes=[0, 1], bytes=20 * US))
    cases.invalid("certificate-cut-that-nothing-leaves", "certificate", bounded(10.5, kind="cut", nodes=[2], bytes=10 * US))
    # S = {0, switch}: 3 GB/s leave the switch, which is reached after 0.5 us, and take 0.25 us.
    through = ([chunk(0, [1])], [send(0, 0, 0, 10), send(0, 1, 0.5, 10)], 0.5 + 10 + 0.25)
    cases.valid("certificate-cut-behind-a-switch", schedule(
        star(), *through, bound=(0.5 + 10 / 3 + 0.25, {"kind": "cut", "nodes": [0, 3], "bytes": 10 * US})))
    # One byte over both links takes 2 us per GB/s of 2 links; r + s = 0.5 + 0.5 us on each, as GPU 1 may send and receive.
    cases.valid("certificate-metric", bounded(2 * 10 / 2 + 0.5, kind="metric", length=[1.0, 1.0]))
    cases.invalid("certificate-metric-of-wrong-length", "certificate", bounded(10.5, kind="metric", length=[1.0]))
    cases.invalid("certificate-metric-of-no-length", "certificate", bounded(10.5, kind="metric", length=[0.0, 0.0]))
    cases.invalid("certificate-unknown-kind", "certificate", bounded(10.5, kind="guess"))
    # Length on the link into the switch alone: 10 us at 2 GB/s; r = 0, s = 0.5 on it + 0.25 on to a GPU.
    cases.valid("certificate-metric-before-a-switch", schedule(
        star(), *through, bound=(10 / 2 + 0.75, {"kind": "metric", "length": [1.0, 0.0, 0.0]})))
    # Of three contributions only that of GPU 0 leaves {0}, over two links.
    everyone = [chunk(g, [h for h in range(3) if h != g]) for g in range(3)]
    cases.valid("certificate-cut-of-one-contribution", schedule(
        full(3), everyone, [send(l // 2, l, 0, 10) for l in range(6)], 10 + 0.5, "allgather", 3 * 10 * US,
        bound=(10 / 2 + 0.5, {"kind": "cut", "nodes": [0], "bytes": 10 * US})))
    # Copies leave GPU 0 over two links: T = 10 / 2; stated: + 0.5 + 0.5 (over either link, on to the other GPU); sound: + 0.5.
    copies = ([chunk(0, [1, 2])], [send(0, 0, 0, 10), send(0, 1, 0, 10)], 10 + 0.5)
    for name, us in (("stated", 5 + 1.0), ("sound", 5 + 0.5)):
        cases.valid(f"certificate-cut-{name}-reading",
                    schedule(full(3), *copies, bound=(us, {"kind": "cut", "nodes": [0], "bytes": 10 * US})))
    cases.invalid("certificate-metric-of-multicast", "certificate",
                  schedule(full(3), *copies, bound=(10 / 6 + 0.5, {"kind": "metric", "length": [1.0] * 6})))
    # With long latencies the stated reading exceeds what this schedule reaches.
    fast = schedule(full(3, 8.0), [chunk(0, [1, 2])], [send(0, 0, 0, 10), send(0, 1, 0, 10)], 10 + 8.0)
    fast["lower_bound"] = {"us": 5 + 16.0, "certificate": {"kind": "cut", "nodes": [0], "bytes": 10 * US}}
    cases.invalid("certificate-beyond-the-finish", "certificate", fast)


def add(cases):
    for part in (rule1, rule2, rule3, rule4, rule5, rule6, rule7, form, collectives, certificates):
        part(cases)
