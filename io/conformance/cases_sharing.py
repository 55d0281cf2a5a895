"""Cases of version 2 of tenants, and of GPUs with little memory for what they pass on."""
from case_writer import US, chunk, full, line, schedule, send, total


def tenants(cases):
    """Two chunks from 0 to 1, one after the other."""
    sends = [send(0, 0, 0, 10), send(1, 0, 10, 10)]

    def of(first, second, **keys):
        return schedule(line(2), [chunk(0, [1], **first), chunk(0, [1], **second)], sends, 20.5, **keys)

    cases.valid("tenants-of-two-priorities", of({"tenant": 3}, {"tenant": 7, "priority": 2.5}))
    cases.invalid("tenant-in-version-1", "format", of({"tenant": 3}, {}, version=1))
    cases.invalid("tenant-below-0", "format", of({"tenant": -1}, {}))
    cases.invalid("tenant-of-two-priorities", "format", of({"tenant": 3}, {"tenant": 3, "priority": 2.5}))
    cases.invalid("tenant-without-priority", "format", of({}, {"tenant": 1, "priority": 0}))


def memory(cases):
    """0 -> 1 -> 2; GPU 1 only passes on. A chunk of 10 us is there from the arrival of its first byte, 0.5 us after the start, to the
    end of the send onwards."""
    def relaying(limit, sends, finish, chunks=2, fabric=None, to=2):
        fabric = fabric or line(3)
        fabric.nodes[1]["buffer_bytes"] = limit
        return schedule(fabric, [chunk(0, [to])] * chunks, sends, finish)

    apart = [send(0, 0, 0, 10), send(0, 1, 10.5, 10), send(1, 0, 20, 10), send(1, 1, 30.5, 10)]  # 0.5-20.5, 20.5-40.5
    packed = [send(0, 0, 0, 10), send(0, 1, 10.5, 10), send(1, 0, 10, 10), send(1, 1, 20.5, 10)]  # 0.5-20.5, 10.5-30.5
    cases.valid("memory-for-one-chunk", relaying(10 * US, apart, 41.0))
    cases.valid("memory-for-two-chunks", relaying(20 * US, packed, 31.0))
    cases.invalid("memory-for-one-of-two-chunks", "12", relaying(10 * US, packed, 31.0))
    cases.invalid("memory-for-less-than-a-chunk", "12", relaying(9 * US, apart, 41.0))
    cases.invalid("memory-that-is-none", "12", relaying(0, apart[:2], 21.0, chunks=1))
    early = [*apart[:2], send(1, 0, 19.5, 10), send(1, 1, 30, 10)]  # 20.0: half a microsecond before the first has left
    cases.invalid("memory-filled-before-it-is-free", "12", relaying(10 * US, early, 40.5))
    cases.valid("memory-of-who-wants-it", relaying(0, [send(0, 0, 0, 10), send(1, 0, 10, 10)], 20.5, to=1))
    # Dropped after the first use and fetched again for the second one; 1 holds another chunk meanwhile.
    star = line(3)
    back = star.link(1, 2, 1.0, 0.5)  # a second link 1 -> 2
    again = [send(0, 0, 0, 10), send(0, 1, 10.5, 10), send(1, 0, 20, 10), send(1, 1, 30.5, 10),
             send(0, 0, 40, 10), send(0, back, 50.5, 10)]
    cases.valid("memory-dropped-and-fetched-again", relaying(10 * US, again, 41.0, fabric=star))
    kept = [*again[:4], send(0, back, 50.5, 10)]  # the same without fetching: it stayed from 0.5 to 60.5
    cases.invalid("memory-kept-instead-of-fetched-again", "12", relaying(10 * US, kept, 41.0, fabric=star))
    # What is there twice counts once.
    twice = full(3)
    twice.nodes[1]["buffer_bytes"] = 10 * US
    cases.valid("memory-of-one-chunk-that-comes-twice", schedule(
        twice, [chunk(0, [2])],
        [send(0, 0, 0, 10), send(0, 3, 10.5, 10), send(0, 0, 10, 10)], 21.0))
    # A GPU that adds nothing of its own to a sum.
    added = line(4)
    added.nodes[2]["buffer_bytes"] = 10 * US
    sums = [send(0, 0, 0, 10, op=1), send(0, 1, 10.5, 10, op=1), send(0, 2, 21.0, 10, op=1)]
    cases.valid("memory-of-a-sum", schedule(added, [total([0, 1], [3])], sums, 31.5))
    added = line(4)
    added.nodes[2]["buffer_bytes"] = 9 * US
    cases.invalid("memory-too-little-for-a-sum", "12", schedule(added, [total([0, 1], [3])], sums, 31.5))
    # 0 and 1 add up at 2, which has nothing of its own; between their arrivals the first part stays.
    meeting = line(4)
    meeting.links[0]["dst"] = 2
    meeting.nodes[2]["buffer_bytes"] = 10 * US
    parts = [send(0, 0, 0, 10, op=1), send(0, 1, 30, 10, op=1), send(0, 2, 40.5, 10, op=1)]
    cases.valid("memory-of-parts-of-a-sum", schedule(meeting, [total([0, 1], [3])], parts, 51.0))
    between = [send(1, 0, 12, 5), send(1, 2, 17.5, 5)]
    other = chunk(0, [3], 5.0)
    meeting = line(4)
    meeting.links[0]["dst"] = 2
    meeting.nodes[2]["buffer_bytes"] = 10 * US
    cases.invalid("memory-between-parts-of-a-sum", "12", schedule(
        meeting, [total([0, 1], [3]), {**other, "reduce": 0}], parts + between, 51.0))
    cases.invalid("memory-below-0", "format", relaying(-1, apart, 41.0))


def add(cases):
    tenants(cases)
    memory(cases)
