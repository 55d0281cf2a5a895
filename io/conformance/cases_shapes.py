"""Cases of version 2 of groups, with and without relays, and of parts by counts."""
from case_writer import US, chunk, line, schedule, send


def add(cases):
    """GPUs 0 -> 1 -> 2 and 0 -> 2 in one hop of half the speed; what 0 has goes to 2, or both have something for 2."""
    fabric = line(3)
    slow = fabric.link(0, 2, 0.5, 0.5)
    two = {"group": [0, 2]}
    alone = {"group": [0, 2], "relay": "none"}
    over = [send(0, 0, 0, 10), send(0, 1, 10.5, 10)]
    straight = [send(0, slow, 0, 20)]

    def broadcast(sends, finish, shape, **keys):
        return schedule(fabric, [chunk(0, [2])], sends, finish, "broadcast", 10 * US, shape=shape, **keys)

    cases.valid("group-relayed", broadcast(over, 21.0, two))
    cases.valid("group-without-relays", broadcast(straight, 20.5, alone))
    cases.invalid("group-relayed-without-relays", "11", broadcast(over, 21.0, alone))
    cases.invalid("group-in-version-1", "format", broadcast(straight, 20.5, two, version=1))
    cases.invalid("group-of-one", "format", broadcast(straight, 20.5, {"group": [0]}))
    cases.invalid("group-in-disorder", "format", broadcast(straight, 20.5, {"group": [2, 0]}))
    cases.invalid("group-names-a-gpu-twice", "format", broadcast(straight, 20.5, {"group": [0, 0, 2]}))
    cases.invalid("group-of-a-gpu-that-does-not-exist", "format", broadcast(straight, 20.5, {"group": [0, 3]}))
    cases.invalid("group-without-its-destination", "format", broadcast(straight, 20.5, {"group": [0, 1]}))
    cases.invalid("group-forgets-a-member", "demand", broadcast(over, 21.0, {"group": [0, 1, 2]}))
    cases.invalid("relay-that-does-not-exist", "format", broadcast(straight, 20.5, {"group": [0, 2], "relay": "some"}))
    cases.invalid("relay-of-nobody", "format", broadcast(over, 21.0, {"relay": "none"}))
    cut = {"kind": "cut", "nodes": [0], "bytes": 10 * US}
    # 1.5 GB/s leave GPU 0, 0.5 of them without relays.
    cases.valid("certificate-cut-of-a-group", broadcast(over, 21.0, two, bound=(10 / 1.5 + 0.5, cut)))
    cases.valid("certificate-cut-without-relays", broadcast(straight, 20.5, alone, bound=(20.5, cut)))
    cases.invalid("certificate-cut-as-if-without-relays", "certificate", broadcast(over, 21.0, two, bound=(20.5, cut)))
    cases.valid("certificate-metric-without-relays", broadcast(
        straight, 20.5, alone, bound=(20.5, {"kind": "metric", "length": [5, 5, 1]})))
    cases.valid("certificate-latency-of-a-group", broadcast(
        over, 21.0, two, bound=(0.5, {"kind": "latency", "source": 0, "destination": 2})))
    # Each of three has another amount for GPU 2.
    gathered = [chunk(0, [2], 4.0), chunk(1, [2], 6.0)]
    sends = [send(0, slow, 0, 8), send(1, 1, 0, 6)]

    def gather(counts, chunks=gathered, size=13 * US):
        return schedule(fabric, chunks, sends[:len(chunks)], 8.5, "gather", size, shape={"counts": counts})

    cases.valid("counts", gather([4 * US, 6 * US, 3 * US]))
    cases.valid("counts-of-nothing", schedule(
        fabric, gathered[:1], sends[:1], 8.5, "gather", 7 * US, shape={"counts": [4 * US, 0, 3 * US]}))
    cases.invalid("counts-of-other-chunks", "demand", gather([5 * US, 5 * US, 3 * US]))
    cases.invalid("counts-of-another-size", "demand", gather([4 * US, 6 * US, 4 * US]))
    cases.invalid("counts-of-too-few", "format", gather([4 * US, 6 * US]))
    cases.invalid("counts-below-0", "format", gather([4 * US, 6 * US, -1]))
    cases.invalid("counts-of-one-buffer", "format", broadcast(straight, 20.5, {"group": [0, 2], "counts": [10 * US, 0]}))
    pairs = [0, 2 * US, 4 * US, 0, US, 6 * US, 0, 0, 0]
    exchanged = [chunk(0, [1], 2.0), chunk(0, [2], 4.0), chunk(1, [2], 6.0)]
    moved = [send(0, 0, 0, 2), send(1, slow, 0, 8), send(2, 1, 0, 6)]
    cases.valid("counts-of-pairs", schedule(fabric, exchanged, moved, 8.5, "alltoall", 10 * US, shape={"counts": pairs}))
    cases.invalid("counts-of-pairs-turned-round", "demand", schedule(
        fabric, exchanged, moved, 8.5, "alltoall", 10 * US, shape={"counts": [0, 0, 0, 2 * US, US, 0, 4 * US, 6 * US, 0]}))
