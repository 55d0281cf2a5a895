"""The cases of version 2: transfers, rates, message costs, bandwidth steps, combining, and their certificates."""
from case_writer import ABSENT, US, Fabric, changed, chunk, full, line, schedule, send, total


def star(**keys):
    """0 -> switch 3 -> {1, 2}: in at 2 GB/s, 0.5 us; out at 1 GB/s each, 0.25 us."""
    fabric = Fabric(3)
    switch = fabric.switch(**keys)
    fabric.link(0, switch, 2.0, 0.5)
    fabric.link(switch, 1, 1.0, 0.25)
    fabric.link(switch, 2, 1.0, 0.25)
    return fabric


def transfers(cases):
    two = [chunk(0, [1]), chunk(0, [1])]

    def together(**wrong):
        return [send(0, 0, 0, 20, transfer=7), send(1, 0, 0, 20, transfer=7), send(0, 1, 0.5, 20, transfer=7),
                {**send(1, 1, 0.5, 20, transfer=7), **wrong}]
    finish = 0.5 + 2 * 10 + 0.25
    cases.valid("transfer-two-chunks-together", schedule(star(), two, together(), finish))
    cases.invalid("transfer-one-chunk-at-another-time", "4", schedule(star(), two, together(start=20.5), finish + 20))
    cases.invalid("transfer-leaves-the-switch-late", "4", schedule(
        star(), two, together()[:2] + [send(c, 1, 0.75, 20, transfer=7) for c in (0, 1)], finish + 0.25))
    cases.invalid("transfer-other-chunks-on-a-link", "4", schedule(star(), two, together()[:3], finish))
    cases.invalid("transfer-of-two-separate-sends", "4", schedule(
        full(3), [chunk(0, [1, 2])], [send(0, 0, 0, 10, transfer=7), send(0, 1, 0, 10, transfer=7)], 10.5))
    once = [send(0, 0, 0, 10, transfer=7), send(0, 1, 0.5, 10, transfer=7)]
    cases.invalid("transfer-ends-in-a-switch", "5", schedule(
        star(), two[:1], once + [send(0, 0, 20, 5, transfer=8)], 10.75))
    cases.invalid("transfer-starts-in-a-switch", "4", schedule(
        star(), two[:1], once + [send(0, 2, 0.5, 10, transfer=8)], 10.75))
    islands = star()
    other = islands.switch()
    islands.link(other, 2)
    cases.invalid("transfer-leaves-a-switch-that-it-does-not-enter", "4", schedule(
        islands, two[:1], once + [send(0, 3, 0.5, 10, transfer=7)], 10.75))
    cases.invalid("transfer-two-chunks-at-once-without-a-number", "1", schedule(
        line(2), two, [send(0, 0, 0, 20), send(1, 0, 0, 20)], 20.5))
    stored = star(forwarding="store_and_forward")

    def regrouped(*numbers):  # two chunks at 2 GB/s; there at 10.5
        return [send(0, 0, 0, 10, transfer=1), send(1, 0, 0, 10, transfer=1),
                send(0, 1, 10.5, 10, transfer=numbers[0]), send(1, 2, 10.5, 10, transfer=numbers[1])]
    parts = [chunk(0, [1]), chunk(0, [2])]
    cases.valid("transfer-regrouped-by-a-storing-switch", schedule(stored, parts, regrouped(2, 3), 10 + 0.5 + 10 + 0.25))
    cases.invalid("transfer-across-a-storing-switch", "4", schedule(stored, parts, regrouped(1, 1), 20.75))
    # What several sends without a number leave open, numbers say.
    pair = Fabric(3)
    switch = pair.switch(multicast=False)
    for src, dst, gbps in ((0, switch, 2.0), (0, switch, 1.0), (switch, 1, 2.0), (switch, 2, 1.0)):
        pair.link(src, dst, gbps)
    lengths = (10, 10, 10, 10)  # in 0 with out 3, in 1 with out 2: 1 GB/s both
    cases.valid("transfer-numbers-pair-sends", schedule(
        pair, [chunk(0, [1, 2])], [send(0, l, 0, t, transfer=(0, 1, 1, 0)[l]) for l, t in enumerate(lengths)], 10.0))
    cases.invalid("transfer-numbers-pair-sends-otherwise", "1", schedule(
        pair, [chunk(0, [1, 2])], [send(0, l, 0, t, transfer=(0, 1, 0, 1)[l]) for l, t in enumerate(lengths)], 10.0))
    costly = Fabric(3)
    switch = costly.switch(multicast=False)
    for src, dst in ((0, switch), (0, switch), (switch, 1), (switch, 2)):
        costly.link(src, dst, 1.0, message_us=2.0)
    cases.invalid("transfer-numbers-are-missing", "4",
                  schedule(costly, [chunk(0, [1, 2])], [send(0, l, 0, 2 + 10) for l in range(4)], 12.0))
    cases.valid("transfer-numbers-where-messages-cost", schedule(
        costly, [chunk(0, [1, 2])], [send(0, l, 0, 2 + 10, transfer=l % 2) for l in range(4)], 2 + 10.0))


def rates(cases):
    def several(*transfers):  # (start, rate) of one chunk of 10 us each
        return schedule(line(2), [chunk(0, [1]) for _ in transfers],
                        [send(c, 0, start, 10 / rate, transfer=c, rate=rate) for c, (start, rate) in enumerate(transfers)],
                        max(start + 10 / rate for start, rate in transfers) + 0.5)
    cases.valid("rate-half", several((0, 0.5)))
    cases.valid("rate-two-halves", several((0, 0.5), (5, 0.5)))
    cases.invalid("rate-three-halves", "1", several((0, 0.5), (5, 0.5), (10, 0.5)))
    cases.valid("rate-three-thirds", several((0, 1 / 3), (0, 1 / 3), (0, 1 / 3)))
    cases.invalid("rate-slightly-too-much-for-long", "1", several((0, 0.5), (0, 0.5001)))
    cases.valid("rate-sums-beyond-within-the-tolerance", several((0, 0.5), (0, 0.5), (20 - 5e-7, 1.0)))
    cases.invalid("rate-beyond-the-bandwidth", "4", several((0, 1.25)))
    good = several((0, 0.5))
    cases.invalid("rate-without-a-number", "4", changed(good, ["sends", "transfer", 0], -1))
    cases.invalid("rate-that-the-end-contradicts", "1", changed(good, ["sends", "rate_GBps", 0], 0.4))
    slow = [send(0, 0, 0, 20, transfer=0, rate=0.5), send(0, 1, 0.5, 20, transfer=0, rate=0.5)]
    cases.valid("rate-through-a-switch", schedule(star(), [chunk(0, [1])], slow, 0.5 + 10 / 0.5 + 0.25))
    cases.invalid("rate-differs-within-a-transfer", "4",
                  schedule(star(), [chunk(0, [1])], [slow[0], {**slow[1], "rate": 0.4}], 20.75))
    cases.invalid("rate-stated-for-a-part-of-a-transfer", "4",
                  schedule(star(), [chunk(0, [1])], [slow[0], {**slow[1], "rate": None}], 20.75))
    for gbps in (1.0, 0.9):
        fabric = Fabric(3)
        fabric.share(gbps, fabric.link(0, 1), fabric.link(0, 2))
        data = schedule(fabric, [chunk(0, [1]), chunk(0, [2])], [send(c, c, 0, 20, transfer=c, rate=0.5) for c in (0, 1)], 10 / 0.5)
        if gbps == 1.0:
            cases.valid("rate-halves-share-a-nic", data)
        else:
            cases.invalid("rate-halves-beyond-the-nic", "6", data)


def messages(cases):
    def costly(gbps=1.0, message=2.0):
        fabric = Fabric(2)
        fabric.link(0, 1, gbps, 0.5, message_us=message)
        return fabric
    one = [chunk(0, [1])]
    cases.valid("message-cost", schedule(costly(), one, [send(0, 0, 0, 2 + 10)], 2 + 10 + 0.5))
    cases.invalid("message-cost-left-out", "1", schedule(costly(), one, [send(0, 0, 0, 10)], 10.5))
    two = [chunk(0, [1]), chunk(0, [1])]
    cases.valid("message-cost-paid-twice", schedule(costly(), two, [send(0, 0, 0, 12), send(1, 0, 12, 12)], 2 * (2 + 10) + 0.5))
    cases.invalid("message-cost-keeps-the-link", "1", schedule(costly(), two, [send(0, 0, 0, 12), send(1, 0, 10, 12)], 22.5))
    cases.valid("message-cost-paid-once-together", schedule(
        costly(), two, [send(c, 0, 0, 2 + 20, transfer=0) for c in (0, 1)], 2 + 2 * 10 + 0.5))

    def halves(later):
        return schedule(costly(), two, [send(c, 0, start, 2 + 10 / 0.5, transfer=c, rate=0.5) for c, start in ((0, 0), (1, later))],
                        later + 2 + 20 + 0.5)
    cases.valid("message-costs-one-after-another", halves(2))
    cases.invalid("message-costs-at-once", "8", halves(0))
    cases.invalid("message-costs-overlap", "8", halves(1))
    through = Fabric(3)
    switch = through.switch()
    through.link(0, switch, 1.0, 0.5, message_us=1.0)
    through.link(switch, 1, 1.0, 0.25, message_us=3.0)
    through.link(switch, 2, 1.0, 0.25)
    cases.valid("message-cost-is-the-largest", schedule(through, one, [send(0, 0, 0, 13), send(0, 1, 0.5, 13)], 0.5 + 3 + 10 + 0.25))
    cases.invalid("message-cost-is-not-the-sum", "1", schedule(through, one, [send(0, 0, 0, 14), send(0, 1, 0.5, 14)], 14.75))

    def behind(later):
        """A (o = 3) to GPU 1, B (o = 1) to GPU 2, both over the first link, which a start keeps for 1 us."""
        sends = [send(0, 0, 0, 3 + 20, transfer=0, rate=0.5), send(0, 1, 0.5, 3 + 20, transfer=0, rate=0.5),
                 send(1, 0, later, 1 + 20, transfer=1, rate=0.5), send(1, 2, later + 0.5, 1 + 20, transfer=1, rate=0.5)]
        return schedule(through, [chunk(0, [1]), chunk(0, [2])], sends, max(0.5 + 23 + 0.25, later + 0.5 + 21 + 0.25))
    cases.valid("message-cost-of-each-link", behind(1))
    cases.invalid("message-cost-of-each-link-overlaps", "8", behind(0.5))


def steps(cases):
    def stepped(*steps, **keys):
        fabric = Fabric(2)
        fabric.link(0, 1, steps[0][1], 0.5, bandwidth_steps=[{"from_us": t, "GBps": b} for t, b in steps], **keys)
        return fabric
    one = [chunk(0, [1])]
    slower = stepped((0, 1.0), (5, 0.5))
    cases.valid("steps-slower", schedule(slower, one, [send(0, 0, 0, 15)], 5 + 5 / 0.5 + 0.5))
    cases.invalid("steps-ignored", "1", schedule(slower, one, [send(0, 0, 0, 10)], 10.5))
    cases.valid("steps-started-after-the-step", schedule(slower, one, [send(0, 0, 5, 20)], 5 + 10 / 0.5 + 0.5))
    cases.valid("steps-reached-on-the-way", schedule(slower, one, [send(0, 0, 2, 17)], 2 + (5 - 2) + (10 - 3) / 0.5 + 0.5))
    cases.valid("steps-from-fast-to-slow", schedule(stepped((0, 2.0), (3, 1.0)), one, [send(0, 0, 0, 7)], 3 + (10 - 2 * 3) / 1 + 0.5))
    cases.valid("steps-down-and-up", schedule(stepped((0, 1.0), (4, 0.0), (10, 2.0)), one, [send(0, 0, 0, 13)], 10 + (10 - 4) / 2 + 0.5))
    cases.valid("steps-message-passes-while-down", schedule(
        stepped((0, 1.0), (2, 0.0), (6, 1.0), message_us=3.0), one, [send(0, 0, 2, 14)], max(2 + 3, 6) + 10 + 0.5))
    cases.invalid("steps-down-for-good", "1", schedule(stepped((0, 1.0), (4, 0.0)), one, [send(0, 0, 0, 10)], 10.5))
    cases.invalid("steps-begin-with-another-bandwidth", "format", changed(
        schedule(slower, one, [send(0, 0, 0, 15)], 15.5), ["topology", "links", 0, "bandwidth_GBps"], 2.0))
    cases.invalid("steps-do-not-begin-at-0", "format", schedule(stepped((1, 1.0), (4, 2.0)), one, [send(0, 0, 4, 5)], 9.5))
    through = Fabric(2)
    switch = through.switch()
    through.link(0, switch, 1.0, 2.0)
    through.link(switch, 1, 1.0, 0.0, bandwidth_steps=[{"from_us": 0, "GBps": 1.0}, {"from_us": 5, "GBps": 0.5}])
    # The step reaches the sender 2 us earlier: 3 us at 1 GB/s, the rest at 0.5 GB/s.
    length = 3 + (10 - 3) / 0.5
    cases.valid("steps-behind-a-switch", schedule(through, one, [send(0, 0, 0, length), send(0, 1, 2, length)], 2 + length))
    cases.invalid("steps-behind-a-switch-at-the-wrong-time", "1", schedule(
        through, one, [send(0, 0, 0, 15), send(0, 1, 2, 15)], 17.0))
    cases.invalid("steps-do-not-fit-the-rate", "1", schedule(slower, one, [send(0, 0, 0, 10, transfer=0, rate=1.0)], 10.5))
    cases.valid("steps-fit-the-rate", schedule(slower, one, [send(0, 0, 0, 20, transfer=0, rate=0.5)], 10 / 0.5 + 0.5))
    two = [chunk(0, [1]), chunk(0, [1])]
    cases.invalid("steps-do-not-fit-two-rates", "1", schedule(
        slower, two, [send(c, 0, 0, 20, transfer=c, rate=0.5) for c in (0, 1)], 20.5))
    # The cut: 5 us at 1 GB/s, the rest at 0.5 GB/s.
    bound = {"kind": "cut", "nodes": [0], "bytes": 10 * US}
    data = schedule(slower, one, [send(0, 0, 0, 15)], 15.5, bound=(5 + 5 / 0.5 + 0.5, bound))
    cases.valid("certificate-cut-with-steps", data)
    cases.invalid("certificate-cut-that-enters-with-steps", "certificate", schedule(
        slower, [total([0, 1], [1])], [send(0, 0, 0, 15, 1)], 15.5,
        bound=(5 + 5 / 0.5 + 0.5, {"kind": "cut", "nodes": [1], "bytes": 10 * US})))
    cases.invalid("certificate-cut-that-ignores-steps", "certificate", changed(data, ["lower_bound", "us"], 10.5))


def combining(cases):
    inwards = line(3, backwards=True)  # link 0: 1 -> 0, link 1: 2 -> 1
    three = [total([0, 1, 2], [0])]
    chain = [send(0, 1, 0, 10, 1), send(0, 0, 10.5, 10, 1)]
    good = schedule(inwards, three, chain, 2 * (10 + 0.5))
    cases.valid("combine-chain", good)
    cases.invalid("combine-without-what-comes-later", "7",
                  schedule(inwards, three, [chain[0], send(0, 0, 0, 10, 1)], 10.5))
    cases.invalid("combine-op-1-where-nothing-is-reduced", "9", schedule(line(2), [chunk(0, [1])], [send(0, 0, 0, 10, 1)], 10.5))
    cases.invalid("combine-copy-loses-a-contribution", "9", schedule(inwards, three, [{**chain[0], "op": 0}, chain[1]], 21.0))
    cases.invalid("combine-same-contribution-twice", "9",
                  schedule(inwards, three, chain + [send(0, 1, 10, 10, 1)], 21.0))
    cases.invalid("combine-send-of-nothing", "2",
                  schedule(inwards, [total([0, 2], [0])], [send(0, 1, 0, 10, 1), send(0, 0, 0, 10, 1)], 21.0))
    cases.valid("combine-relayed", schedule(inwards, [total([0, 2], [0])], chain, 2 * (10 + 0.5)))
    cases.valid("combine-exchange", schedule(full(2), [total([0, 1], [0, 1])], [send(0, l, 0, 10, 1) for l in (0, 1)], 10 + 0.5))
    # Recursive doubling: with the neighbour, then across.
    doubling = [send(0, g * 3 + k, start, 10, 1) for start, partner in ((0, (1, 0, 3, 2)), (10.5, (2, 3, 0, 1)))
                for g in range(4) for k in [partner[g] - (partner[g] > g)]]
    everyone = list(range(4))
    butterfly = schedule(full(4), [total(everyone, everyone)], doubling, 2 * (10 + 0.5), "allreduce", 10 * US)
    cases.valid("combine-butterfly", butterfly)
    cases.invalid("combine-butterfly-once-more", "9", schedule(
        full(4), [total(everyone, everyone)], doubling + [send(0, 0, 21, 10, 1)], 21.0, "allreduce", 10 * US))
    # Along a chain and back: sums in, copies out.
    both = line(3, backwards=True)
    both.link(0, 1, 1.0, 0.5)
    both.link(1, 2, 1.0, 0.5)
    back = [send(0, 2, 21, 10), send(0, 3, 31.5, 10)]
    cases.valid("combine-and-copy-back", schedule(both, [total([0, 1, 2], [0, 1, 2])], chain + back, 4 * (10 + 0.5)))
    cases.invalid("combine-copied-back-as-a-sum", "9", schedule(
        both, [total([0, 1, 2], [0, 1, 2])], chain + [{**back[0], "op": 1}, back[1]], 42.0))
    # At 20 us a copy of {0, 1} and the sum's addition {2} reach GPU 1, which holds {1}: the copy comes first.
    meet = Fabric(3)
    for src, dst in ((1, 0), (0, 1), (2, 1)):
        meet.link(src, dst)
    cases.valid("combine-copies-before-additions", schedule(
        meet, [total([0, 1, 2], [1])], [send(0, 0, 0, 10, 1), send(0, 1, 10, 10), send(0, 2, 10, 10, 1)], 10 + 10.0))
    cases.invalid("combine-copy-after-the-addition", "9", schedule(
        meet, [total([0, 1, 2], [1])], [send(0, 0, 0, 10, 1), send(0, 1, 10, 10), send(0, 2, 5, 10, 1)], 20.0))
    cases.invalid("combine-circle-at-one-instant", "9", schedule(
        full(2, 0.0), [total([0, 1], [0, 1], 1e-9)], [send(0, l, 0, 1e-9, 1) for l in (0, 1)], 1e-9))
    cases.valid("combine-arrival-at-the-start-counts", schedule(
        line(3, 0.0, backwards=True), three, [send(0, 1, 0, 10, 1), send(0, 0, 10 - 5e-7, 10, 1)], 10 - 5e-7 + 10))
    late = [total([0, 1], [0], sources_ready=[0.0, 4.0])]
    cases.valid("combine-ready-time-of-a-source", schedule(line(2, backwards=True), late, [send(0, 0, 4, 10, 1)], 4 + 10 + 0.5))
    cases.invalid("combine-before-a-source-is-ready", "2", schedule(line(2, backwards=True), late, [send(0, 0, 3, 10, 1)], 13.5))
    cases.valid("combine-own-contribution-comes-last", schedule(
        line(2, backwards=True), [total([0, 1], [0], sources_ready=[30.0, 0.0])], [send(0, 0, 0, 10, 1)], 30.0))
    cases.valid("combine-complete-at-the-earliest", schedule(both, three, chain + [send(0, 2, 30, 10)], 2 * (10 + 0.5)))
    moved = [{"chunk": 0, "gpu": 1, "sources": [1, 2]}]
    cases.valid("combine-held", schedule(inwards, three, [send(0, 0, 0, 10, 1)], 10 + 0.5, held=moved))
    cases.invalid("combine-held-already", "9", schedule(inwards, three, chain, 21.0, held=moved))
    cases.valid("combine-held-elsewhere", schedule(
        inwards, three, [send(0, 0, 0, 10, 1)], 10 + 0.5, held=moved + [{"chunk": 0, "gpu": 2, "sources": []}]))
    cases.invalid("format-held-of-another-source", "format", schedule(
        inwards, [total([0, 1], [0])], [send(0, 0, 0, 10, 1)], 10.5, held=[{"chunk": 0, "gpu": 1, "sources": [2]}]))
    cases.invalid("format-origin-is-not-the-first-source", "format", changed(good, ["chunks", "origin", 0], 1))
    cases.valid("combine-several-holders-of-one-datum", schedule(
        full(4), [chunk([0, 1], [2, 3])], [send(0, 1, 0, 10), send(0, 5, 0, 10)], 10 + 0.5))
    cases.invalid("combine-holders-leave-one-out", "7", schedule(full(4), [chunk([0, 1], [2, 3])], [send(0, 1, 0, 10)], 10.5))


def adding_star(latencies=(0.5, 0.5, 0.25), **keys):
    """GPUs 1 and 2 -> switch 3 -> GPU 0."""
    fabric = Fabric(3)
    switch = fabric.switch(**keys)
    fabric.link(1, switch, 1.0, latencies[0])
    fabric.link(2, switch, 1.0, latencies[1])
    fabric.link(switch, 0, 1.0, latencies[2])
    return fabric


def adding_switches(cases):
    sums = [total([0, 1, 2], [0])]

    def joined(starts=(0.0, 0.0, 0.5), ops=(1, 1, 1), **keys):
        return [send(0, l, starts[l], 10, ops[l], **keys) for l in range(3)]
    finish = 0.5 + 10 + 0.25
    adds = adding_star(reduce=True)
    cases.valid("switch-adds", schedule(adds, sums, joined(transfer=0), finish))
    cases.invalid("switch-may-not-add", "10", schedule(adding_star(reduce=False), sums, joined(transfer=0), finish))
    cases.invalid("switch-adds-what-is-copied", "10", schedule(adds, sums, joined(ops=(0, 0, 1), transfer=0), finish))
    cases.invalid("switch-adds-without-a-number", "4", schedule(adds, sums, joined(), finish))
    cases.invalid("switch-adds-at-two-instants", "10", schedule(
        adding_star((0.5, 1.5, 0.25), reduce=True), sums, joined(transfer=0), finish))
    cases.valid("switch-adds-at-one-instant", schedule(
        adding_star((0.5, 1.5, 0.25), reduce=True), sums, joined((1.0, 0.0, 1.5), transfer=0), 1.5 + 10 + 0.25))
    linked = adding_star(reduce=True)
    linked.link(1, 2, 1.0, 0.5)
    twice = [send(0, 3, 0, 10, 1), *joined((10.5, 10.5, 11.0), transfer=0)]
    cases.invalid("switch-adds-a-contribution-twice", "10", schedule(linked, sums, twice, 21.25))
    # Up from both, down to both: everything in one transfer.
    def up_and_down(**keys):
        fabric = Fabric(2)
        switch = fabric.switch(reduce=True, **keys)
        for g in (0, 1):
            fabric.link(g, switch, 1.0, 0.5)
        for g in (0, 1):
            fabric.link(switch, g, 1.0, 0.25)
        return fabric

    def all_at_once(op):
        return [send(0, l, 0.0 if l < 2 else 0.5, 10, 1 if l < 2 else op, transfer=0) for l in range(4)]
    both = [total([0, 1], [0, 1])]
    cases.valid("switch-adds-and-copies", schedule(up_and_down(), both, all_at_once(0), 0.5 + 10 + 0.25, "allreduce", 10 * US))
    cases.invalid("switch-adds-and-returns-the-own-part", "9", schedule(up_and_down(), both, all_at_once(1), finish))
    cases.invalid("switch-adds-but-may-not-copy", "5", schedule(up_and_down(multicast=False), both, all_at_once(0), finish))
    # Store-and-forward: the sum waits for its second part.
    stored = {"forwarding": "store_and_forward", "reduce": True}

    def parts(second, onward):
        return [send(0, 0, 0, 10, 1, transfer=0), send(0, 1, second, 10, 1, transfer=1), send(0, 2, onward, 10, 1, transfer=2)]
    cases.valid("switch-stores-and-adds", schedule(adding_star(**stored), sums, parts(0, 10.5), 10 + 0.5 + 10 + 0.25))
    cases.valid("switch-sum-waits", schedule(adding_star(**stored, buffer_bytes=10 * US), sums, parts(3, 13.5), 13.5 + 10 + 0.25))
    cases.invalid("switch-sum-waits-without-a-buffer", "3", schedule(adding_star(**stored), sums, parts(3, 13.5), 23.75))
    cases.invalid("switch-second-part-comes-too-late", "5", schedule(adding_star(**stored), sums, parts(3, 10.5), 20.75))
    plain = adding_star(forwarding="store_and_forward", buffer_bytes=10 * US)
    cases.valid("switch-sends-parts-on-one-by-one", schedule(plain, sums, [
        send(0, 0, 0, 10), send(0, 1, 0, 10), send(0, 2, 10.5, 10, 1), send(0, 2, 20.5, 10, 1)], 10 + 0.5 + 2 * 10 + 0.25))
    once = adding_star(forwarding="store_and_forward", multicast=False)
    once.link(3, 0, 1.0, 0.25)
    cases.invalid("switch-copies-a-part-but-may-not", "3", schedule(
        once, [total([0, 1], [0])], [send(0, 0, 0, 10), send(0, 2, 10.5, 10, 1), send(0, 3, 10.5, 10)], 20.75))


def collectives(cases):
    """On GPUs with links to each other, 1 GB/s, 0.5 us."""
    parts = [total([0, 1, 2], [g]) for g in range(3)]
    direct = [send(c, g * 2 + (c - (c > g)), 0, 10, 1) for c in range(3) for g in range(3) if g != c]
    scattered = schedule(full(3), parts, direct, 10 + 0.5, "reduce_scatter", 3 * 10 * US)
    cases.valid("demand-reduce-scatter", scattered)
    cases.invalid("demand-reduce-scatter-of-another-size", "demand", changed(scattered, ["size_bytes"], 10 * US))
    cases.invalid("demand-reduce-scatter-without-a-part", "demand", schedule(
        full(3), parts[:2], [s for s in direct if s["chunk"] < 2], 10.5, "reduce_scatter", 3 * 10 * US))
    inwards = line(3, backwards=True)
    chain = [send(0, 1, 0, 10, 1), send(0, 0, 10.5, 10, 1)]
    cases.valid("demand-reduce", schedule(inwards, [total([0, 1, 2], [0])], chain, 21.0, "reduce", 10 * US))
    cases.invalid("demand-reduce-without-a-source", "demand", schedule(
        inwards, [total([0, 2], [0])], chain, 21.0, "reduce", 10 * US))
    cases.invalid("demand-allreduce-serves-one", "demand", schedule(
        inwards, [total([0, 1, 2], [0])], chain, 21.0, "allreduce", 10 * US))
    # Contributions of 10 us, each in parts of 4 and 6 us.
    uneven = [chunk(g, [1 - g], us) for g in (0, 1) for us in (4.0, 6.0)]
    sends = [send(0, 0, 0, 4), send(1, 0, 4, 6), send(2, 1, 0, 4), send(3, 1, 4, 6)]
    data = schedule(full(2), uneven, sends, 4 + 6 + 0.5, "allgather", 2 * 10 * US)
    cases.valid("demand-unequal-parts", data)
    cases.invalid("demand-unequal-parts-of-another-sum", "demand", schedule(
        full(2), uneven[:3] + [chunk(1, [0], 5.0)], sends[:3] + [send(3, 1, 4, 5)], 10.5, "allgather", 2 * 10 * US))


def time_cuts(cases):
    # 10 us of data over 1 GB/s from 5 us on and, behind a switch, 3 GB/s from 6 us on: (T - 5) + 3 (T - 6) = 10.
    two = Fabric(2)
    two.switch()
    two.link(0, 1, 1.0, 5.0)
    two.link(0, 2, 3.0, 4.0)
    two.link(2, 1, 3.0, 2.0)
    halves = [chunk(0, [1], 3.0), chunk(0, [1], 7.0)]
    apart = [send(0, 0, 0, 3), send(1, 1, 0, 7 / 3), send(1, 2, 4, 7 / 3)]

    def cut(fabric, chunks, sends, finish, alpha, bound=None, **keys):
        gpu = keys or {"destination": 1}
        node = next(iter(gpu.values()))
        return schedule(fabric, chunks, sends, finish,
                        bound=(bound or alpha[node], {"kind": "time_cut", **gpu, "alpha_us": alpha}))
    asked = (two, halves, apart, 6 + 7 / 3)
    cases.valid("certificate-time-cut", cut(*asked, [0.0, 33 / 4, 4.0]))
    cases.valid("certificate-time-cut-weaker", cut(*asked, [0.0, 8.0, 4.0]))
    cases.invalid("certificate-time-cut-overstated", "certificate", cut(*asked, [0.0, 33 / 4, 4.0], 8.3))
    cases.invalid("certificate-time-cut-too-late", "certificate", cut(*asked, [0.0, 8.3, 4.0]))
    cases.invalid("certificate-time-cut-of-an-early-switch", "certificate", cut(*asked, [0.0, 33 / 4, 3.0]))
    cases.invalid("certificate-time-cut-of-closed-sources", "certificate", cut(*asked, [1.0, 33 / 4, 5.0]))
    cases.invalid("certificate-time-cut-of-other-length", "certificate", cut(*asked, [0.0, 33 / 4]))
    # Two links from 0 and 1 to 2, 4 GB/s each and 5 together; latencies 1 and 3: 5 (T - 3) + 4 x 2 = 28 KB.
    shared = Fabric(3)
    shared.link(0, 2, 4.0, 1.0)
    shared.link(1, 2, 4.0, 3.0)
    shared.share(5.0, 0, 1)
    fast = [chunk(0, [2], 14.0), chunk(1, [2], 14.0)]
    timed = [send(1, 1, 0, 14, transfer=1, rate=1.0), send(0, 0, 0, 3.5, transfer=0, rate=4.0)]
    cases.valid("certificate-time-cut-of-a-group", cut(shared, fast, timed, 17.0, [0.0, 0.0, 7.0], destination=2))
    cases.invalid("certificate-time-cut-that-ignores-a-group", "certificate",
                  cut(shared, fast, timed, 17.0, [0.0, 0.0, 7.1], destination=2))
    # Message costs where a transfer begins: 2 us at GPU 0, not at the switch.
    costly = Fabric(2)
    costly.switch()
    costly.link(0, 2, 1.0, 1.0, message_us=2.0)
    costly.link(2, 1, 1.0, 1.0, message_us=2.0)
    passed = [send(0, 0, 0, 12, transfer=0), send(0, 1, 1, 12, transfer=0)]
    cases.valid("certificate-time-cut-with-message-costs", cut(costly, [chunk(0, [1])], passed, 14.0, [0.0, 14.0, 3.0]))
    cases.invalid("certificate-time-cut-with-too-many-message-costs", "certificate",
                  cut(costly, [chunk(0, [1])], [send(0, 0, 2, 12, transfer=0), send(0, 1, 3, 12, transfer=0)], 16.0, [0.0, 16.0, 3.0]))
    # Scatter of 3 x 10 us along a line, of the source: 20 us over link 0 -> 1, 0.5 us on each link.
    parts = [chunk(0, [1]), chunk(0, [2])]
    scattered = [send(1, 0, 0, 10), send(0, 0, 10, 10), send(1, 1, 10.5, 10)]
    cases.valid("certificate-time-cut-of-a-source", cut(line(3), parts, scattered, 21.0, [20.5, 0.0, 0.0], source=0))
    cases.invalid("certificate-time-cut-of-a-source-of-multicast", "certificate",
                  cut(line(3), [chunk(0, [1, 2])], [send(0, 0, 0, 10), send(0, 1, 10.5, 10)], 21.0, [10.5, 0.0, 0.0], source=0))
    cases.invalid("certificate-time-cut-of-both", "format",
                  cut(line(3), parts, scattered, 21.0, [20.5, 0.0, 0.0], source=0, destination=1))


def counted_time_cuts(cases):
    """AllReduce of 1 us, for each source of which a link counts: 4 GPUs around a switch, 1 us a link; all to all takes 2 + 3 us. Of 1, 2
    and 3 one is at the switch 1 us after the start, and what they have added, 1 us and 2 us later: (3 - 1) + 3 (T - 1 - 3) = 3."""
    def star(message_us=0.0, **keys):
        fabric = Fabric(4)
        fabric.switch(**keys)
        for g in range(4):
            fabric.link(g, 4, 1.0, 1.0, message_us=message_us)
        for g in range(4):
            fabric.link(4, g, 1.0, 1.0, message_us=message_us)
        return fabric

    def cut(asked, alpha, bound=None, sources=(1, 2, 3), destination=0, shape=None, **keys):
        fabric, chunks, sends, finish, collective, *held = asked
        return schedule(fabric, chunks, sends, finish, collective, held=held[0] if held else None, shape=shape, bound=(
            bound or alpha[0], {"kind": "time_cut", **(keys or {"destination": destination}), "alpha_us": alpha, "sources": list(sources)}))

    everyone = [total([0, 1, 2, 3], [0, 1, 2, 3], 1.0)]

    def exchange(fabric, length=1.0):
        sends = []
        for g in range(4):
            for i in range(3):
                sends += [send(0, g, i * length, length, transfer=3 * g + i),
                          send(0, 4 + (g + 1 + i) % 4, i * length + 1, length, 1, transfer=3 * g + i)]
        return fabric, everyone, sends, 3 * length + 2, "allreduce"
    # A little less than where both are equal, so that times may be rounded down.
    tight = [4.333333, 0.0, 0.0, 0.0, 1.0]
    asked = exchange(star())
    cases.valid("certificate-counted-time-cut", cut(asked, tight))
    cases.valid("certificate-counted-time-cut-weaker", cut(asked, [4.0, 0.0, 0.0, 0.0, 1.0]))
    cases.invalid("certificate-counted-time-cut-overstated", "certificate", cut(asked, tight, 4.4))
    cases.invalid("certificate-counted-time-cut-too-late", "certificate", cut(asked, [4.34, *tight[1:]]))
    cases.invalid("certificate-counted-time-cut-of-a-late-switch", "certificate", cut(asked, [*tight[:4], 1.1]))
    cases.invalid("certificate-counted-time-cut-of-closed-sources", "certificate", cut(asked, [tight[0], 0.0, 0.0, 0.1, 1.0]))
    cases.invalid("certificate-counted-time-cut-where-the-switch-adds", "certificate", cut(exchange(star(reduce=True)), tight))
    # Of one source a byte counts once: 1 x (T - 1 - 1) = 1.
    cases.valid("certificate-counted-time-cut-of-one-source", cut(asked, [3.0, 0.0, 0.0, 0.0, 1.0], sources=[3]))
    cases.invalid("certificate-counted-time-cut-of-one-source-too-late", "certificate", cut(asked, [3.1, 0.0, 0.0, 0.0, 1.0], sources=[3]))
    cases.invalid("certificate-counted-time-cut-out-of-order", "certificate", cut(asked, tight, sources=[2, 1, 3]))
    cases.invalid("certificate-counted-time-cut-of-a-source-twice", "certificate", cut(asked, tight, sources=[1, 1, 2, 3]))
    cases.invalid("certificate-counted-time-cut-of-nobody", "certificate", cut(asked, tight, sources=[]))
    cases.invalid("certificate-counted-time-cut-of-no-gpu", "format", cut(asked, tight, sources=[1, 2, 4]))
    cases.invalid("certificate-counted-time-cut-of-a-source-of-its-own", "format", cut(asked, tight, source=0))
    # Half a microsecond more from each GPU, not from the switch: (4 - 1.5) + 3 (T - 1 - 4) = 3.
    costly = [5.166666, 0.0, 0.0, 0.0, 1.5]
    cases.valid("certificate-counted-time-cut-with-message-costs", cut(exchange(star(0.5), 1.5), costly))
    cases.invalid("certificate-counted-time-cut-with-too-many-message-costs", "certificate", cut(exchange(star(0.5), 1.5), [5.5, *costly[1:]]))
    # From one that stores too: (4.5 - 1.5) + 3 (T - 1.5 - 4.5) = 3, and each way from GPU to GPU takes 3 us.
    copied = [send(0, g, 1.5 * g, 1.5) for g in range(4)] + [send(0, 4 + h, 1.5 * g + 2.5, 1.5, 1) for g in range(4) for h in range(4) if g != h]
    stored = (star(0.5, forwarding="store_and_forward"), everyone, copied, 4.5 + 2.5 + 1.5 + 1, "allreduce")
    cases.valid("certificate-counted-time-cut-of-a-storing-switch", cut(stored, [5.999999, *costly[1:]]))
    cases.invalid("certificate-counted-time-cut-of-a-storing-switch-too-late", "certificate", cut(stored, [6.1, *costly[1:]]))
    counted_time_cuts_of_a_group(cases, cut)


def counted_time_cuts_of_a_group(cases, cut):
    """3 us of each of 1 and 2 for GPU 0, over two links that take 1 GB/s together; 1 us a link, between 1 and 2 too. From 1 us on each byte
    may have both: 1 + 2 (T - 1 - 1) = 6."""
    def mesh(**keys):
        fabric = Fabric(4 if "shortcut" in keys else 3)
        for a, b in ((1, 0), (2, 0), (1, 2), (2, 1)):
            fabric.link(a, b, 1.0, 1.0, **keys.get("links", {}))
        for a, b in keys.get("shortcut", ()):
            fabric.link(a, b, 1.0, 0.0)
        fabric.share(1.0, 0, 1)
        return fabric

    def gathered(fabric, **keys):
        return fabric, [total([0, 1, 2], [0], 3.0, **keys)], [send(0, 0, 0, 3, 1), send(0, 1, 3, 3, 1)], 7.0, "custom"

    def both(asked, alpha, **keys):
        return cut(asked, alpha, sources=[1, 2], **keys)
    cases.valid("certificate-counted-time-cut-of-a-group", both(gathered(mesh()), [4.5, 0.0, 0.0]))
    cases.invalid("certificate-counted-time-cut-of-a-group-too-late", "certificate", both(gathered(mesh()), [4.51, 0.0, 0.0]))
    # GPU 2 has its part from 2 us on, and what comes from GPU 1 before: 2 + 2 (T - 1 - 2) = 6.
    late = gathered(mesh(), sources_ready=[0.0, 0.0, 2.0])
    cases.valid("certificate-counted-time-cut-of-late-data", both(late, [5.0, 0.0, 1.0]))
    cases.invalid("certificate-counted-time-cut-of-late-data-too-late", "certificate", both(late, [5.1, 0.0, 1.0]))
    cases.invalid("certificate-counted-time-cut-before-the-data", "certificate", both(late, [5.0, 0.0, 2.1]))
    # Something is held of the first sum, which does not count: GPU 1 has both parts. Of the second one as above.
    held = [{"chunk": 0, "gpu": 1, "sources": [1, 2]}, {"chunk": 0, "gpu": 2, "sources": []}]
    sums = [total([0, 1, 2], [0], 3.0)] * 2
    moved = (mesh(), sums, [send(0, 0, 0, 3, 1), send(1, 0, 3, 3, 1), send(1, 1, 6, 3, 1)], 10.0, "custom", held)
    cases.valid("certificate-counted-time-cut-beside-what-is-held", both(moved, [4.5, 0.0, 0.0]))
    cases.invalid("certificate-counted-time-cut-of-what-is-held", "certificate", both(moved, [6.0, 0.0, 0.0]))
    cases.invalid("certificate-counted-time-cut-of-held-sums-alone", "certificate", both(
        (mesh(), sums[:1], moved[2][:1], 4.0, "custom", held), [3.0, 0.0, 0.0]))
    steps = mesh(links={"bandwidth_steps": [{"from_us": 0, "GBps": 1}, {"from_us": 100, "GBps": 2}]})
    cases.invalid("certificate-counted-time-cut-beside-steps", "certificate", both(gathered(steps), [4.0, 0.0, 0.0]))
    # A way over GPU 3 that takes no time, unless it may not pass anything on.
    around = gathered(mesh(shortcut=((1, 3), (2, 3), (3, 1), (3, 2))))
    group = {"group": [0, 1, 2]}
    cases.valid("certificate-counted-time-cut-without-relays", both(around, [4.5, 0.0, 0.0, 0.0], shape={**group, "relay": "none"}))
    cases.invalid("certificate-counted-time-cut-with-relays", "certificate", both(around, [4.5, 0.0, 0.0, 0.0], shape=group))


def prices_over_time(cases):
    def prices(asked, us, begins, place, price, end=None, **keys):
        return schedule(*asked, bound=(us, {
            "kind": "prices", "from_us": begins, "until_us": us if end is None else end, "place": place, "price": price, **keys}))
    # Through GPU 1 at 1 GB/s and 1 us: link 0 takes 6 KB, and what leaves 1 us before the end is late: (T - 1) x 1 = 6.
    line = Fabric(3)
    line.link(0, 1, 1.0, 1.0)
    line.link(1, 2, 1.0, 1.0)
    asked = (line, [chunk(0, [2], 4.0), chunk(0, [1], 2.0), chunk(1, [2], 2.0)],
             [send(0, 0, 0, 4), send(1, 0, 4, 2), send(2, 1, 0, 2), send(0, 1, 5, 4)], 10.0)
    cases.valid("certificate-prices", prices(asked, 7.0, [0.0, 6.0], [0], [1.0]))
    cases.valid("certificate-prices-weaker", prices(asked, 6.5, [0.0, 5.5], [0], [1.0]))
    cases.invalid("certificate-prices-overstated", "certificate", prices(asked, 7.0, [0.0, 6.0], [0], [1.0], end=6.5))
    cases.invalid("certificate-prices-too-late", "certificate", prices(asked, 7.1, [0.0, 6.1], [0], [1.0]))
    # In the last period a byte may leave for nothing that then arrives in time.
    cases.invalid("certificate-prices-of-a-free-period", "certificate", prices(asked, 7.0, [0.0, 5.9], [0], [1.0]))
    cases.invalid("certificate-prices-negative", "format", prices(asked, 7.0, [0.0, 6.0], [0, 1], [1.0, -0.1]))
    cases.invalid("certificate-prices-of-no-place", "format", prices(asked, 7.0, [0.0, 6.0], [0, 4], [1.0, 0.0]))
    cases.invalid("certificate-prices-twice", "certificate", prices(asked, 7.0, [0.0, 6.0], [0, 0], [0.5, 0.5]))
    cases.invalid("certificate-prices-that-begin-late", "certificate", prices(asked, 7.0, [1.0, 6.0], [0], [1.0]))
    cases.invalid("certificate-prices-with-a-source", "format", prices(asked, 7.0, [0.0, 6.0], [0], [1.0], source=0))
    # A cycle of three: 0.5 KB a pair, first hops before T - 2, second ones from 1 to T - 1: 2 (T - 2) = 2 x 0.5.
    cycle = Fabric(3)
    for g in range(3):
        cycle.link(g, (g + 1) % 3, 1.0, 1.0)
    around = (cycle, [chunk(g, [(g + 2) % 3], 0.5) for g in range(3)],
              [send(g, g, 0, 0.5) for g in range(3)] + [send(g, (g + 1) % 3, 1.5, 0.5) for g in range(3)], 3.0)
    begins = [0.0, 0.5, 1.0, 1.5]
    cases.valid("certificate-prices-of-two-hops", prices(around, 2.5, begins, [0, 1, 2, 6, 7, 8], [1.0] * 6))
    cases.invalid("certificate-prices-of-a-hop-late", "certificate",
                  prices(around, 2.5, [0.0, 0.5, 1.1, 1.5], [0, 1, 2, 6, 7, 8], [1.0] * 6))
    late = [chunk(g, [(g + 2) % 3], 0.5, ready=0.25) for g in range(3)]
    cases.valid("certificate-prices-of-late-data", prices(
        (cycle, late, [send(s["chunk"], s["link"], s["start"] + 0.25, 0.5) for s in around[2]], 3.25), 2.75,
        [0.0, 0.25, 0.75, 1.25, 1.75], [3, 4, 5, 9, 10, 11], [1.0] * 6))
    # Two links from 0 and 1 to 2, 4 GB/s each and 5 together; latencies 1 and 3: 5 (T - 3) + 4 x 2 = 28 KB.
    shared = Fabric(3)
    shared.link(0, 2, 4.0, 1.0)
    shared.link(1, 2, 4.0, 3.0)
    shared.share(5.0, 0, 1)
    timed = (shared, [chunk(0, [2], 14.0), chunk(1, [2], 14.0)],
             [send(1, 1, 0, 14, transfer=1, rate=1.0), send(0, 0, 0, 3.5, transfer=0, rate=4.0)], 17.0)
    cases.valid("certificate-prices-of-a-group", prices(timed, 7.0, [0.0, 4.0, 6.0], [2, 3], [1.0, 1.0]))
    cases.invalid("certificate-prices-that-ignore-a-group", "certificate",
                  prices(timed, 7.0, [0.0, 4.0, 6.0], [0, 1, 3], [1.0, 1.0, 1.0]))
    # Message costs where a transfer begins: 2 us at GPU 0, not at the switch.
    costly = Fabric(2)
    costly.switch()
    costly.link(0, 2, 1.0, 1.0, message_us=2.0)
    costly.link(2, 1, 1.0, 1.0, message_us=2.0)
    passed = (costly, [chunk(0, [1])], [send(0, 0, 0, 12, transfer=0), send(0, 1, 1, 12, transfer=0)], 14.0)
    cases.valid("certificate-prices-with-message-costs", prices(passed, 14.0, [0.0, 2.0, 12.0, 13.0], [2], [1.0]))
    cases.invalid("certificate-prices-with-message-costs-of-a-switch", "certificate",
                  prices(passed, 14.5, [0.0, 2.0, 12.0, 13.0], [2], [1.0]))


def joint_cuts(cases):
    """10 us from GPU 0 to 1 and 2 over a switch that does not copy, 1 us a link. What leaves link 0 before T - 4 may be passed on
    and counts for both; before T - 2 it counts for one: 2 (T - 4) + 2 < 2 x 10."""
    def star(**keys):
        fabric = Fabric(3)
        fabric.switch(**{"multicast": False, **keys})
        for g in range(3):
            fabric.link(g, 3, 1.0, 1.0)
        for g in range(3):
            fabric.link(3, g, 1.0, 1.0)
        return fabric

    def joint(asked, until, us=None, begins=None, place=(0, 6), price=(2.0, 1.0), passed=None, key="destination", weight=1.0, **keys):
        passed = until - 2 if passed is None else passed
        cuts = [{key: 1, "weight": weight, "alpha_us": [0.0, until, passed, 0.0]}, {key: 2, "weight": 1.0, "alpha_us": [0.0, passed, until, 0.0]}]
        return schedule(*asked, bound=(us or until, {
            "kind": "joint_cuts", "from_us": begins or [0.0, until - 4, until - 2], "until_us": until,
            "place": list(place), "price": list(price), "cuts": cuts, **keys}))
    sends = [send(0, 0, 0, 10), send(0, 4, 1, 10), send(0, 1, 12, 10), send(0, 5, 13, 10)]
    asked = (star(), [chunk(0, [1, 2])], sends, 24.0)
    cases.valid("certificate-joint-cuts", joint(asked, 12.99))
    cases.valid("certificate-joint-cuts-weaker", joint(asked, 12.5))
    cases.invalid("certificate-joint-cuts-too-late", "certificate", joint(asked, 13.0))
    cases.invalid("certificate-joint-cuts-overstated", "certificate", joint(asked, 12.99, us=13.0))
    cases.invalid("certificate-joint-cuts-that-pay-too-little", "certificate", joint(asked, 12.99, price=(1.9, 1.0)))
    cases.invalid("certificate-joint-cuts-of-a-short-period", "certificate", joint(asked, 12.99, begins=[0.0, 8.9, 10.99]))
    cases.invalid("certificate-joint-cuts-that-open-late", "certificate", joint(asked, 12.99, passed=11.1))
    cases.invalid("certificate-joint-cuts-of-a-negative-weight", "format", joint(asked, 12.99, weight=-1.0))
    cases.invalid("certificate-joint-cuts-of-no-kind", "format", joint(asked, 12.99, key="gpu"))
    cases.invalid("certificate-joint-cuts-with-more", "format", joint(asked, 12.99, bytes=1.0))
    cases.invalid("certificate-joint-cuts-where-a-switch-copies", "certificate", joint(
        (star(multicast=True), [chunk(0, [1, 2])], sends, 24.0), 12.99))
    # The same sums backwards: GPUs 1 and 2 to GPU 0, whose link is number 3.
    added = [send(0, 2, 0, 10, transfer=0), send(0, 4, 1, 10, 1, transfer=0), send(0, 1, 12, 10, transfer=1), send(0, 3, 13, 10, 1, transfer=1)]
    summed = (star(), [total([0, 1, 2], [0])], added, 24.0)
    cases.valid("certificate-joint-cuts-of-sources", joint(summed, 12.99, place=(3, 9), key="source"))
    cases.invalid("certificate-joint-cuts-of-sources-too-late", "certificate", joint(summed, 13.0, place=(3, 9), key="source"))
    cases.invalid("certificate-joint-cuts-of-sources-of-multicast", "certificate", joint(asked, 12.99, key="source"))
    cases.invalid("certificate-joint-cuts-where-a-switch-adds", "certificate", joint(
        (star(reduce=True), [total([0, 1, 2], [0])], added, 24.0), 12.99, place=(3, 9), key="source"))


def priced_messages(asked, until, us=None, place=(0,), price=None, begins=(0.0,), parts=1, **gpu):
    """Prices of 1, if they are not told, of messages for GPU 1, if no other is."""
    return schedule(*asked, bound=(us or until, {
        "kind": "message_prices", "from_us": list(begins), "until_us": until, "place": list(place), "price": price or [1.0] * len(place),
        "parts": parts, **(gpu or {"destination": 1})}))


def costly(gpus, *ends, **keys):
    """Links of 1 GB/s where a message costs 1 us; node `gpus`, if one leads there, is a switch with these keys."""
    fabric = Fabric(gpus)
    if any(gpus in pair for pair in ends):
        fabric.switch(**keys)
    for pair in ends:
        fabric.link(*pair, 1.0, 0.0, message_us=1.0)
    return fabric


def switched_pair():
    """GPU 0 -> switch 2 -> GPU 1: first 1 us and a message cost of 1 us, then 2 us and one of 0.5 us."""
    fabric = Fabric(2)
    fabric.switch()
    fabric.link(0, 2, 1.0, 1.0, message_us=1.0)
    fabric.link(2, 1, 1.0, 2.0, message_us=0.5)
    return fabric


def message_prices(cases):
    """A message costs 1 us, 10 us of data are sent at 1 GB/s. A price of 1 all the time earns T; the cheapest message is the longest
    one, which keeps the link for T us and has T - 1 of them for bytes: 10 T / (T - 1) are paid, so that T < 11."""
    one = (costly(2, (0, 1)), [chunk(0, [1])], [send(0, 0, 0, 11)], 11.0)
    cases.valid("certificate-message-prices", priced_messages(one, 10.99))
    cases.valid("certificate-message-prices-weaker", priced_messages(one, 9.0, place=[0, 1], begins=[0.0, 4.0]))
    cases.invalid("certificate-message-prices-too-late", "certificate", priced_messages(one, 11.0))
    cases.invalid("certificate-message-prices-overstated", "certificate", priced_messages(one, 10.9, us=10.99))
    # While the message cost passes the link may be free: T - 1 against 10 (T - 1) / (T - 1). A message that ends with it has no bytes,
    # but would count as one that has.
    cases.valid("certificate-message-prices-of-a-free-cost", priced_messages(one, 10.99, place=[1], begins=[0.0, 0.999]))
    cases.invalid("certificate-message-prices-of-a-free-cost-and-no-more", "certificate", priced_messages(
        one, 10.99, place=[1], begins=[0.0, 1.0]))
    cases.invalid("certificate-message-prices-of-a-longer-free-period", "certificate", priced_messages(
        one, 10.99, place=[1], begins=[0.0, 1.5]))
    for name, rule, parts in (("of-no-parts", "certificate", 0), ("of-too-many-parts", "certificate", 1025), ("of-half-a-part", "format", 1.5)):
        cases.invalid(f"certificate-message-prices-{name}", rule, priced_messages(one, 10.99, parts=parts))
    good = priced_messages(one, 10.99)
    certificate = ["lower_bound", "certificate"]
    cases.invalid("certificate-message-prices-without-parts", "format", changed(good, [*certificate, "parts"], ABSENT))
    cases.invalid("certificate-message-prices-with-more", "format", changed(good, [*certificate, "bytes"], 1.0))
    cases.invalid("certificate-message-prices-of-two-gpus", "format", changed(good, [*certificate, "source"], 0))
    cases.invalid("certificate-message-prices-of-no-gpu", "format", priced_messages(one, 10.99, destination=2))
    cases.invalid("certificate-message-prices-of-a-negative-gpu", "format", priced_messages(one, 10.99, destination=-2))
    cases.invalid("certificate-message-prices-of-who-wants-nothing", "certificate", priced_messages(one, 10.99, destination=0))
    stepped = changed(good, ["topology", "links", 0, "bandwidth_steps"], [{"from_us": 0.0, "GBps": 1.0}])
    cases.invalid("certificate-message-prices-where-bandwidth-changes", "certificate", stepped)
    # Data that comes at 5 us: T - 5 against 10 (T - 5) / (T - 6).
    late = (costly(2, (0, 1)), [chunk(0, [1], ready=5.0)], [send(0, 0, 5, 11)], 16.0)
    cases.valid("certificate-message-prices-of-late-data", priced_messages(late, 15.99, place=[1], begins=[0.0, 5.0]))
    cases.invalid("certificate-message-prices-of-early-data", "certificate", priced_messages(
        (late[0], [chunk(0, [1])], *late[2:]), 15.99, place=[1], begins=[0.0, 5.0]))
    # Over GPU 1 to GPU 2: what is not there before T - 1 comes too late for another message. T - 1 against 10 (T - 1) / (T - 2).
    sends = [send(0, 0, 0, 11), send(0, 1, 11, 11)]
    relayed = (costly(3, (0, 1), (1, 2)), [chunk(0, [2])], sends, 22.0)
    cases.valid("certificate-message-prices-of-a-relay", priced_messages(relayed, 11.99, begins=[0.0, 10.991], destination=2))
    cases.invalid("certificate-message-prices-of-a-relay-too-late", "certificate", priced_messages(
        relayed, 12.0, begins=[0.0, 11.0], destination=2))
    cases.invalid("certificate-message-prices-of-a-relay-free-too-soon", "certificate", priced_messages(
        relayed, 11.99, begins=[0.0, 10.5], destination=2))
    # A switch that stores is a place, another one passes the message on as it comes.
    stored = (costly(2, (0, 2), (2, 1), forwarding="store_and_forward"), [chunk(0, [1])], sends, 22.0)
    cases.valid("certificate-message-prices-where-a-switch-stores", priced_messages(stored, 11.99, begins=[0.0, 10.991]))
    through = [send(0, l, 11, 11, transfer=0) for l in (0, 1)]
    cases.invalid("certificate-message-prices-where-no-switch-stores", "certificate", priced_messages(
        (costly(2, (0, 2), (2, 1)), [chunk(0, [1])], through, 22.0), 11.99, begins=[0.0, 10.99]))
    # Both links have prices. In one part a byte may go over both in T: 2 T against 20 T / (T - 1). Of two halves it has but one for one of
    # them: 2 T against 10 T / (T - 1) + 10 (T / 2) / (T / 2 - 1), so that (T - 1) (T - 2) < 5 (2 T - 3).
    most = (13 + 101 ** 0.5) / 2
    cases.valid("certificate-message-prices-of-two-parts", priced_messages(relayed, most - 0.001, place=[0, 1], parts=2, destination=2))
    cases.invalid("certificate-message-prices-of-two-parts-too-late", "certificate", priced_messages(
        relayed, most + 0.001, place=[0, 1], parts=2, destination=2))
    cases.invalid("certificate-message-prices-of-one-part", "certificate", priced_messages(
        relayed, most - 0.001, place=[0, 1], destination=2))
    # Over a switch, 1 us and 2 us: the second link is kept 1 us later than the first one, from 1 to T - 2 at most, and by 1 us the
    # longer for the greater message cost: T - 3 against 10 (T - 3) / (T - 4).
    switched = (switched_pair(), [chunk(0, [1])], [send(0, 0, 0, 11, transfer=0), send(0, 1, 1, 11, transfer=0)], 14.0)
    cases.valid("certificate-message-prices-over-a-switch", priced_messages(switched, 13.99, place=[3], begins=[0.0, 1.0, 11.99]))
    cases.invalid("certificate-message-prices-over-a-switch-too-late", "certificate", priced_messages(
        switched, 14.0, place=[3], begins=[0.0, 1.0, 12.0]))
    cases.invalid("certificate-message-prices-over-a-switch-too-soon", "certificate", priced_messages(
        switched, 13.99, place=[1], begins=[0.0, 10.99, 11.99]))
    # To two GPUs 5 us each over one link.
    fork = costly(3, (0, 3), (3, 1), (3, 2))
    in_turn = [send(c, l, 6 * c, 6, transfer=c) for c in (0, 1) for l in (0, 1 + c)]
    pairs = (fork, [chunk(0, [1], 5.0), chunk(0, [2], 5.0)], in_turn, 12.0)
    cases.valid("certificate-message-prices-of-pairs", priced_messages(pairs, 10.99, destination=-1))
    cases.invalid("certificate-message-prices-of-one-of-two-pairs", "certificate", priced_messages(pairs, 10.99, destination=1))
    copied = (fork, [chunk(0, [1, 2])], [send(0, l, 0, 11, transfer=0) for l in (0, 1, 2)], 11.0)
    cases.valid("certificate-message-prices-of-multicast", priced_messages(copied, 10.99, destination=2))
    cases.invalid("certificate-message-prices-of-all-of-multicast", "certificate", priced_messages(copied, 10.99, destination=-1))
    # A sum counts once, with the source that is farthest: GPU 0 over GPU 1, or GPU 1 whose data comes late.
    chained = (relayed[0], [total([0, 1, 2], [2])], [send(0, 0, 0, 11, 1), send(0, 1, 11, 11, 1)], 22.0)
    cases.valid("certificate-message-prices-of-a-sum", priced_messages(chained, 11.99, begins=[0.0, 10.991], destination=2))
    cases.invalid("certificate-message-prices-of-a-sum-too-late", "certificate", priced_messages(
        chained, 12.0, begins=[0.0, 11.0], destination=2))
    lately = (relayed[0], [total([0, 1, 2], [2], sources_ready=[0.0, 5.0, 0.0])], *chained[2:])
    cases.valid("certificate-message-prices-of-a-late-sum", priced_messages(lately, 15.99, place=[3], begins=[0.0, 5.0], destination=2))
    nothing_new = [{"chunk": 0, "gpu": 2, "sources": [2]}]
    cases.invalid("certificate-message-prices-of-what-is-held", "certificate", schedule(
        *chained, held=nothing_new, bound=(11.99, {"kind": "message_prices", "from_us": [0.0, 10.99], "until_us": 11.99, "place": [0],
                                                   "price": [1.0], "parts": 1, "destination": 2})))
    # Two links of 1 GB/s each, 1 GB/s together.
    shared = costly(3, (0, 2), (1, 2))
    shared.share(1.0, 0, 1)
    gathered = (shared, [chunk(g, [2], 5.0) for g in (0, 1)], [send(g, g, 6 * g, 6) for g in (0, 1)], 12.0)
    cases.valid("certificate-message-prices-of-a-group", priced_messages(gathered, 10.99, place=[2], destination=2))


def message_prices_of_sources(cases):
    """The same from the end on: what GPU 1 sends on T - 1 before the end or sooner is there too early to have come from GPU 0."""
    sends = [send(0, 0, 0, 11), send(0, 1, 11, 11, 1)]
    summed = (costly(3, (0, 1), (1, 2)), [total([0, 2], [2])], sends, 22.0)
    ends = {"place": [1], "begins": [0.0, 10.991]}
    cases.valid("certificate-message-prices-of-a-source", priced_messages(summed, 11.99, **ends, source=0))
    cases.valid("certificate-message-prices-of-all-sources", priced_messages(summed, 11.99, **ends, source=-1))
    cases.invalid("certificate-message-prices-of-a-source-too-late", "certificate", priced_messages(
        summed, 12.0, place=[1], begins=[0.0, 11.0], source=0))
    cases.invalid("certificate-message-prices-of-a-source-forwards", "certificate", priced_messages(summed, 11.99, **ends, destination=2))
    cases.invalid("certificate-message-prices-of-who-has-nothing", "certificate", priced_messages(summed, 11.99, **ends, source=2))
    # Two sums of 5 us each that GPU 0 has a part in, and GPU 3 in one of them.
    sums = [total([0, 1], [1], 5.0), total([0, 2, 3], [2], 5.0)]
    sends = [send(c, l, 6 * c, 6, int(l > 0), transfer=c) for c in (0, 1) for l in (0, 1 + c)] + [send(1, 3, 0, 6, 1, transfer=2)]
    several = (costly(4, (0, 4), (4, 1), (4, 2), (3, 2), multicast=False), sums, sends, 12.0)
    cases.valid("certificate-message-prices-of-a-source-of-two-sums", priced_messages(several, 10.99, source=0))
    cases.invalid("certificate-message-prices-of-all-sources-of-a-sum", "certificate", priced_messages(several, 10.99, source=-1))
    cases.invalid("certificate-message-prices-of-a-source-of-multicast", "certificate", priced_messages(
        (costly(3, (0, 3), (3, 1), (3, 2)), [chunk(0, [1, 2])], [send(0, l, 0, 11, transfer=0) for l in (0, 1, 2)], 11.0), 10.99, source=0))
    # Over a switch the first link is kept 2 us later than the second one, from 2 to T - 1. Ready times are left out of account.
    sends = [send(0, 0, 1, 11, transfer=0), send(0, 1, 2, 11, transfer=0)]
    switched = (switched_pair(), [chunk(0, [1], ready=1.0)], sends, 15.0)
    cases.valid("certificate-message-prices-of-a-source-over-a-switch", priced_messages(
        switched, 13.99, place=[2], begins=[0.0, 2.0, 12.99], source=0))
    cases.invalid("certificate-message-prices-of-a-source-over-a-switch-too-soon", "certificate", priced_messages(
        switched, 13.99, place=[2], begins=[0.0, 1.0, 11.99], source=0))
    # In a group all links are as much earlier or later.
    shared = Fabric(3)
    for g in (0, 1):
        shared.link(g, 2, 1.0, float(g), message_us=1.0)
    shared.share(1.0, 0, 1)
    gathered = (shared, [chunk(g, [2], 5.0) for g in (0, 1)], [send(g, g, 6 * g, 6) for g in (0, 1)], 13.0)
    cases.valid("certificate-message-prices-of-an-uneven-group", priced_messages(gathered, 10.99, place=[2], destination=-1))
    cases.invalid("certificate-message-prices-of-sources-of-an-uneven-group", "certificate", priced_messages(
        gathered, 10.99, place=[2], source=-1))


def back_and_forth(cases):
    """From a switch to another one and back to it, which no transfer may do: it would hold what the switches do not."""
    fabric = Fabric(2)
    near, far = fabric.switch(), fabric.switch()
    for a, b in ((0, near), (near, far), (far, near), (near, 1)):
        fabric.link(a, b, 1.0, 1.0)
    for name, numbers in (("", {}), ("-with-a-number", {"transfer": 0})):
        sends = [send(0, l, float(l), 10, **numbers) for l in range(4)]
        cases.invalid(f"switch-passed-twice{name}", "4", schedule(fabric, [chunk(0, [1])], sends, 14.0))
        cases.valid(f"switch-passed-once{name}", schedule(fabric, [chunk(0, [1])], [
            send(0, 0, 0, 10, **numbers), send(0, 3, 1, 10, **numbers)], 12.0))
    # What is added up may come down to several GPUs: 0 and 1 -> leaf -> spine <- 2, and back.
    fabric = Fabric(3)
    leaf, spine = fabric.switch(reduce=True), fabric.switch(reduce=True)
    for a, b in ((0, leaf), (1, leaf), (leaf, spine), (2, spine), (spine, leaf), (spine, 2), (leaf, 0), (leaf, 1)):
        fabric.link(a, b, 1.0, 1.0)

    def up_and_down(copied, destinations, ops=(1, 1, 1, 1, 0, 0, 0, 0)):
        starts = (0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0)
        sends = [send(0, l, starts[l], 10, ops[l], transfer=0) for l in range(8) if l not in copied]
        return schedule(fabric, [total([0, 1, 2], destinations)], sends, 3.0 + 10 + 1)
    cases.valid("switch-passed-up-and-down", up_and_down((), [0, 1, 2]))
    cases.valid("switch-passed-up-and-down-to-two", up_and_down((5,), [0, 1]))
    cases.invalid("switch-passed-up-and-down-to-one", "4", up_and_down((5, 7), [0]))
    # GPU 0 alone sends up through a switch that copies, to where nothing is added.
    back = [send(0, l, float(i), 10, 0, transfer=0) for i, l in enumerate((0, 2, 4, 7))]
    held = [{"chunk": 0, "gpu": 0, "sources": [0, 1, 2]}, {"chunk": 0, "gpu": 2, "sources": []}]
    cases.invalid("switch-passed-twice-by-a-sum", "4", schedule(fabric, [total([0, 1, 2], [0, 1])], back, 14.0, held=held))


def knowledge_by_when(cases):
    """A message costs 1 us on each link of three GPUs around a switch; 1 KB takes a thousandth of that."""
    def star(**keys):
        fabric = Fabric(3)
        fabric.switch(**keys)
        for g in range(3):
            fabric.link(g, 3, 1000.0, 0.0, message_us=1.0)
        for g in range(3):
            fabric.link(3, g, 1000.0, 0.0, message_us=1.0)
        return fabric

    def known(asked, times, us=None, sets=(), **gpus):
        return schedule(*asked, 2 * 1.001, bound=(us or times[-1], {
            "kind": "knowledge", **(gpus or {"destination": 0, "sources": [1, 2]}), "sets": list(sets), "times_us": times}))
    # To GPU 0 leads one link: first one part, then another.
    parts = [chunk(1, [0], 1.0), chunk(2, [0], 1.0)]
    one_by_one = [send(c, l, 1.001 * c, 1.001, transfer=c) for c in (0, 1) for l in (1 + c, 3)]
    asked = (star(), parts, one_by_one)
    cases.valid("certificate-knowledge", known(asked, [0.0, 0.999, 1.998]))
    cases.valid("certificate-knowledge-weaker", known(asked, [0.0, 0.7, 0.9, 1.6]))
    cases.valid("certificate-knowledge-with-sets", known(asked, [0.0, 0.999, 1.998], sets=[[0], [0, 3], [1, 2]]))
    cases.invalid("certificate-knowledge-too-late", "certificate", known(asked, [0.0, 0.999, 1.998, 2.1]))
    cases.invalid("certificate-knowledge-overstated", "certificate", known(asked, [0.0, 0.999, 1.998], 2.0))
    cases.invalid("certificate-knowledge-of-long-periods", "certificate", known(asked, [0.0, 1.998]))
    cases.invalid("certificate-knowledge-that-begins-late", "certificate", known(asked, [0.5, 0.999, 1.998]))
    cases.invalid("certificate-knowledge-of-nobody", "certificate", known(asked, [0.0, 0.999], destination=0, sources=[0]))
    cases.invalid("certificate-knowledge-out-of-order", "certificate", known(asked, [0.0, 0.999], destination=0, sources=[2, 1]))
    cases.invalid("certificate-knowledge-of-no-node", "format", known(asked, [0.0, 0.999, 1.998], sets=[[4]]))
    cases.invalid("certificate-knowledge-of-a-source-of-its-own", "format",
                  known(asked, [0.0, 0.999, 1.998], destination=0, sources=[1, 2], source=0))
    # What GPU 0 has for both others leaves it one by one, unless the switch may copy one message to both.
    scattered = ([chunk(0, [1], 1.0), chunk(0, [2], 1.0)],
                 [send(c, l, 1.001 * c, 1.001, transfer=c) for c in (0, 1) for l in (0, 4 + c)])
    backwards = {"source": 0, "destinations": [1, 2]}
    cases.valid("certificate-knowledge-of-a-source", known((star(multicast=False), *scattered), [0.0, 0.999, 1.998], **backwards))
    cases.invalid("certificate-knowledge-of-a-source-that-is-copied", "certificate",
                  known((star(), *scattered), [0.0, 0.999, 1.998], **backwards))
    # A sum of both, unless the switch may add what enters it at once.
    added = ([total([1, 2], [0], 1.0)], [send(0, l, 1.001 * c, 1.001, int(l == 3), transfer=c) for c in (0, 1) for l in (1 + c, 3)])
    cases.valid("certificate-knowledge-of-a-sum", known((star(), *added), [0.0, 0.999, 1.998]))
    cases.invalid("certificate-knowledge-of-a-sum-in-the-switch", "certificate",
                  known((star(reduce=True), *added), [0.0, 0.999, 1.998]))
    # 502 bytes are whole 1 + 0.502 + 0.5 us after their start.
    slow = Fabric(2)
    slow.link(0, 1, 1.0, 0.5, message_us=1.0)
    bytes_too = (slow, [chunk(0, [1], 0.502)], [send(0, 0, 0, 1.502)])
    cases.valid("certificate-knowledge-of-bytes", known(bytes_too, [0.0, 2.001], destination=1, sources=[0]))
    cases.invalid("certificate-knowledge-of-bytes-too-late", "certificate", known(bytes_too, [0.0, 2.003], destination=1, sources=[0]))


def knowledge_of_messages_on_one_link(cases):
    """A message costs 1 us of a link that has more to do. Of two with 10 us of bytes each the first starts at 0, the second, at x = 5
    or later, by z < 20 + 1 / (z - x) x 10: then all is there before 1 + z."""
    def known(asked, finish, times, us=None, **gpus):
        return schedule(*asked, finish, bound=(us or times[-1], {
            "kind": "knowledge", **gpus, "sets": [], "times_us": times}))
    z = (25 + (25 ** 2 - 4 * 90) ** 0.5) / 2  # of (z - 20) (z - 5) = 10

    def one_link(**keys):
        fabric = Fabric(3)
        fabric.link(0, 1, 1.0, 0.0, message_us=1.0)
        fabric.link(1, 2, 1.0, 0.0, **keys)
        return fabric
    late = [chunk(0, [1]), chunk(0, [1], ready=5.0)]
    one_by_one = [send(0, 0, 0, 11), send(1, 0, 11, 11)]
    pair = {"destination": 1, "sources": [0]}
    asked = (one_link(), late, one_by_one)
    cases.valid("certificate-knowledge-of-two-messages", known(asked, 22.0, [0.0, 5.0, 1 + z - 0.001], **pair))
    cases.invalid("certificate-knowledge-of-two-messages-too-late", "certificate", known(asked, 22.0, [0.0, 5.0, 1 + z + 0.001], **pair))
    # What is there from the start on may go in one message.
    cases.invalid("certificate-knowledge-of-one-message", "certificate", known(
        (one_link(), [chunk(0, [1]), chunk(0, [1])], one_by_one), 22.0, [0.0, 5.0, 1 + z - 0.001], **pair))
    changing = (one_link(bandwidth_steps=[{"from_us": 0, "GBps": 1}, {"from_us": 5, "GBps": 2}]), late, one_by_one)
    cases.valid("certificate-knowledge-beside-steps", known(changing, 22.0, [0.0, 5.0, 20.999], **pair))
    cases.invalid("certificate-knowledge-beside-steps-too-late", "certificate", known(changing, 22.0, [0.0, 5.0, 1 + z - 0.001], **pair))
    # From the end on: GPU 0 has sent all for GPU 2 on 5 us before it, as GPU 1 takes so long with that.
    relayed = Fabric(3)
    relayed.link(0, 1, 1.0, 0.0, message_us=1.0)
    relayed.link(1, 2, 1000.0, 3.99, message_us=1.0)
    asked = (relayed, [chunk(0, [2]), chunk(0, [1])], [send(0, 0, 0, 11), send(0, 1, 11, 1.01), send(1, 0, 11, 11)])
    backwards = {"source": 0, "destinations": [1, 2]}
    cases.valid("certificate-knowledge-of-a-source-of-two-messages", known(asked, 22.0, [0.0, 4.99, 1 + 20.63], **backwards))
    cases.invalid("certificate-knowledge-of-a-source-of-two-messages-too-late", "certificate",
                  known(asked, 22.0, [0.0, 4.99, 1 + 20.65], **backwards))
    # As much half a message cost later: both wait for it, or the second message starts 1 us after the first one. Backwards they need not.
    soon = [chunk(0, [1]), chunk(0, [1], ready=0.5)]
    at_once = (one_link(), soon, [send(c, 0, 0.5, 21, transfer=0) for c in (0, 1)])
    cases.valid("certificate-knowledge-of-messages-that-wait", known(at_once, 21.5, [0.0, 0.5, 21.499], **pair))
    cases.invalid("certificate-knowledge-of-messages-that-wait-too-late", "certificate", known(
        (one_link(), soon, one_by_one), 22.0, [0.0, 0.5, 21.501], **pair))
    near = Fabric(3)
    near.link(0, 1, 1.0, 0.0, message_us=1.0)
    near.link(1, 2, 1000.0, 0.09, message_us=0.4)
    asked = (near, [chunk(0, [2]), chunk(0, [1])], [send(0, 0, 0, 11), send(0, 1, 11, 0.41), send(1, 0, 11, 11)])
    cases.valid("certificate-knowledge-of-a-source-of-messages-that-wait", known(asked, 22.0, [0.0, 0.49, 21.24], **backwards))
    cases.invalid("certificate-knowledge-of-a-source-of-messages-that-wait-too-late", "certificate",
                  known(asked, 22.0, [0.0, 0.49, 21.49], **backwards))
    # Over one link from three GPUs: forwards the second message starts 1 us after the first one and the third 2 us, backwards they end so.
    def star():
        fabric = Fabric(4)
        fabric.switch(multicast=False)
        for g in range(4):
            fabric.link(g, 4, 1.0, 0.0, message_us=1.0)
        for g in range(4):
            fabric.link(4, g, 1.0, 0.0, message_us=1.0)
        return fabric
    gathered = (star(), [chunk(g, [0]) for g in (1, 2, 3)],
                [send(c, l, 11 * c, 11, transfer=c) for c in range(3) for l in (c + 1, 4)])
    scattered = (star(), [chunk(0, [g]) for g in (1, 2, 3)],
                 [send(c, l, 11 * c, 11, transfer=c) for c in range(3) for l in (0, c + 5)])
    # A little before messages can have begun, so that rounding outwards counts none more.
    times = [0.0, 0.99, 1.98, 31.6]
    cases.valid("certificate-knowledge-of-messages-apart", known(gathered, 33.0, times, destination=0, sources=[1, 2, 3]))
    cases.invalid("certificate-knowledge-of-a-source-of-messages-apart", "certificate",
                  known(scattered, 33.0, times, source=0, destinations=[1, 2, 3]))


def metrics_with_periods(cases):
    """10 us of data from GPU 0 for both others, and as much from GPU 1 for GPU 2, from 5 us on."""
    parts = [chunk(0, [1, 2], 10), {**chunk(1, [2], 10), "ready": 5.0}]
    sends = [send(0, 0, 0, 10), send(1, 1, 5, 10), send(0, 1, 15, 10)]

    def bounded(us, length, from_us, shares=(), destinations=(1, 2)):
        columns = dict(zip(("datum", "destination", "place", "length"), map(list, zip(*shares)))) if shares else {}
        keys = {"data": [{"source": 0, "destinations": list(destinations)}], "shares": columns} if shares else {}
        return schedule(line(3), parts, sends, 25.5, bound=(us, {"kind": "metric", "length": length, "from_us": from_us, **keys}))
    # All goes over link 1, from 0.5 us on, and is on it for 0.5 us more.
    cases.valid("certificate-metric-of-the-farthest", bounded(20 + 1, [0.0, 1.0], [0.0]))
    cases.valid("certificate-metric-of-two-periods", bounded(20 + 1, [0.0, 1.0] * 2, [0.0, 5.0]))
    # In the first period it costs nothing: the first datum counts for nothing, and the second has 10 us from 5 us on.
    cases.valid("certificate-metric-of-the-later-period", bounded(15 + 0.5, [0.0, 0.0, 0.0, 1.0], [0.0, 5.0]))
    # 10 us to GPU 1 over link 0, 10 us on to GPU 2 over link 1, and 10 us there: 2 T - 1.5 us = 30 us.
    shares = [(0, 1, 0, 1.0), (0, 2, 1, 1.0)]
    cases.valid("certificate-metric-of-shares", bounded(15 + 0.75, [1.0, 1.0], [0.0], shares))
    cases.invalid("certificate-metric-of-periods-overstated", "certificate", bounded(20 + 1.5, [0.0, 1.0] * 2, [0.0, 5.0]))
    cases.invalid("certificate-metric-of-too-large-shares", "certificate", bounded(
        20 + 1, [0.0, 1.0], [0.0], [(0, 1, 1, 0.6), (0, 2, 1, 0.5)]))
    cases.invalid("certificate-metric-of-a-share-nobody-wants", "certificate", bounded(20 + 1, [0.0, 1.0], [0.0], [(0, 0, 1, 1.0)]))
    cases.invalid("certificate-metric-of-falling-periods", "certificate", bounded(20 + 1, [0.0, 1.0] * 2, [0.0, 0.0]))
    cases.invalid("certificate-metric-of-one-period-too-few", "certificate", bounded(20 + 1, [0.0, 1.0], [0.0, 5.0]))


def certificates(cases):
    inwards = line(3, backwards=True)
    chain = ([total([0, 1, 2], [0])], [send(0, 1, 0, 10, 1), send(0, 0, 10.5, 10, 1)], 2 * (10 + 0.5))

    def bounded(us, **certificate):
        return schedule(inwards, *chain, bound=(us, certificate))
    cases.valid("certificate-latency-of-a-sum", bounded(2 * 0.5, kind="latency", source=2, destination=0))
    # 10 us over link 1 -> 0, 0.5 us on it, and 0.5 us from GPU 2 to its tail.
    enter = {"kind": "cut", "nodes": [0], "bytes": 10 * US}
    cases.valid("certificate-cut-that-sums-enter", bounded(10 + 0.5 + 0.5, **enter))
    # GPU 2's contribution is at GPU 1 already: it has to leave {1, 2}, but not {2}.
    held = [{"chunk": 0, "gpu": 1, "sources": [1, 2]}, {"chunk": 0, "gpu": 2, "sources": []}]
    moved = ([total([0, 1, 2], [0])], [send(0, 0, 0, 10, 1)], 10 + 0.5)
    cases.valid("certificate-cut-around-what-is-held", schedule(
        inwards, *moved, held=held, bound=(10 + 0.5, {"kind": "cut", "nodes": [1, 2], "bytes": 10 * US})))
    cases.invalid("certificate-cut-of-what-is-held-elsewhere", "certificate", schedule(
        inwards, *moved, held=held, bound=(10 + 0.5, {"kind": "cut", "nodes": [2], "bytes": 10 * US})))
    cases.invalid("certificate-cut-that-no-sum-enters", "certificate", bounded(11.0, kind="cut", nodes=[1, 2], bytes=10 * US))
    # What several want has to leave {0}: 10 us over link 0 -> 1, and 0.5 us on it; into {0} it is 5 us over a link twice as wide.
    uneven = Fabric(2)
    uneven.link(0, 1, 1.0, 0.5)
    uneven.link(1, 0, 2.0, 0.5)
    cases.valid("certificate-cut-that-sums-leave", schedule(
        uneven, [total([0, 1], [0, 1])], [send(0, 0, 0, 10, 1), send(0, 1, 0, 5, 1)], 10.5, "allreduce", 10 * US,
        bound=(10 + 0.5, {"kind": "cut", "nodes": [0], "bytes": 10 * US})))
    time_cuts(cases)
    counted_time_cuts(cases)
    prices_over_time(cases)
    joint_cuts(cases)
    message_prices(cases)
    message_prices_of_sources(cases)
    back_and_forth(cases)
    knowledge_by_when(cases)
    knowledge_of_messages_on_one_link(cases)
    metrics_with_periods(cases)
    exchange = ([total([0, 1], [0, 1])], [send(0, l, 0, 10, 1) for l in (0, 1)], 10 + 0.5, "allreduce", 10 * US)

    def parted(us, part, side="enter", fabric=None):
        return schedule(fabric or full(2), *exchange, bound=(us, {"kind": "partition", "part": part, "side": side}))
    # Two parts: 2 (2 - 1) x 10 us over two links, and 0.5 us.
    cases.valid("certificate-partition", parted(2 * 10 / 2 + 0.5, [0, 1]))
    cases.valid("certificate-partition-leave", parted(2 * 10 / 2 + 0.5, [0, 1], "leave"))
    cases.invalid("certificate-partition-of-no-allreduce", "certificate", bounded(
        10.5, kind="partition", part=[0, 0, 1], side="enter"))
    cases.invalid("certificate-partition-of-other-length", "certificate", parted(10.5, [0, 1, 1]))
    cases.invalid("certificate-partition-of-no-side", "certificate", parted(10.5, [0, 1], "both"))
    cases.invalid("certificate-cut-with-a-side", "format", bounded(11.0, **enter, side="enter"))
    # Three parts: 2 (3 - 1) x 10 us over six links, and 0.5 us.
    inwards_and_back = [send(0, 2, 0, 10, 1), send(0, 4, 0, 10, 1), send(0, 0, 10.5, 10), send(0, 1, 10.5, 10)]
    cases.valid("certificate-partition-of-three", schedule(
        full(3), [total([0, 1, 2], [0, 1, 2])], inwards_and_back, 2 * (10 + 0.5), "allreduce", 10 * US,
        bound=(4 * 10 / 6 + 0.5, {"kind": "partition", "part": [0, 1, 2], "side": "enter"})))
    cases.invalid("certificate-partition-overstated", "certificate", parted(2 * 10 / 1 + 0.5, [0, 1]))
    cases.invalid("certificate-partition-of-one-part", "certificate", parted(10.5, [0, 0]))
    cases.invalid("certificate-partition-leaves-a-gpu-out", "certificate", parted(10.5, [0, -1]))

    def centre(**keys):  # two GPUs with links to each other, and a switch with links to both
        fabric = full(2)
        switch = fabric.switch(**keys)
        for g in (0, 1):
            fabric.link(g, switch, 1.0, 0.25)
            fabric.link(switch, g, 1.0, 0.25)
        return fabric
    # Four links enter the parts: two between them, two from the switch.
    us = 2 * 10 / 4 + 0.25
    cases.valid("certificate-partition-around-a-switch", parted(us, [0, 1, -1], "enter", centre()))
    cases.invalid("certificate-partition-around-an-adding-switch", "certificate", parted(us, [0, 1, -1], "enter", centre(reduce=True)))
    cases.valid("certificate-partition-leave-around-a-switch", parted(us, [0, 1, -1], "leave", centre(multicast=False)))
    cases.invalid("certificate-partition-leave-around-a-copying-switch", "certificate", parted(us, [0, 1, -1], "leave", centre()))


def add(cases):
    for part in (transfers, rates, messages, steps, combining, adding_switches, collectives, certificates):
        part(cases)
