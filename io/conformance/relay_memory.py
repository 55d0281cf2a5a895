"""Rule 12: what GPUs hold only to pass it on."""
import math
from collections import defaultdict

from schedule_file import tolerance
from transfers import name


def stays(s):
    """GPU's node -> [(from us, until us, bytes, row)], one for each unbroken time that a chunk is there."""
    passages = defaultdict(lambda: ([], []))  # (node, chunk) -> rows that bring it, rows that use it
    for r, l in enumerate(s.link):
        for side, node in ((0, s.links[l].dst), (1, s.links[l].src)):
            chunk, gpu = s.chunks[s.chunk[r]], s.nodes[node].gpu
            if gpu is not None and gpu not in chunk.initial and gpu not in chunk.destinations:
                passages[node, s.chunk[r]][side].append(r)
    found = defaultdict(list)
    for (node, c), (brings, uses) in sorted(passages.items()):
        until = {r: s.arrival[r] for r in brings}
        for use in uses:
            there = [r for r in brings if s.arrival[r] <= s.start[use] + tolerance(s.start[use])]
            for r in sorted(there, key=lambda r: (s.arrival[r], r), reverse=True):
                until[r] = max(until[r], s.end[use])
                if s.op[r] == 0:  # of a sum also what it was added to, back to the copy that replaced all before
                    break
        merged = []
        for r in sorted(brings, key=lambda r: (s.start[r] + s.links[s.link[r]].latency, until[r], r)):
            begin = s.start[r] + s.links[s.link[r]].latency
            if merged and begin <= merged[-1][1] + tolerance(merged[-1][1]):
                merged[-1][1] = max(merged[-1][1], until[r])
            else:
                merged.append([begin, until[r], s.chunks[c].bytes, r])
        found[node] += merged
    return found


def check(s, violations):
    if all(math.isinf(s.nodes[n].buffer_bytes) for n in s.node_of_gpu):
        return
    for node, there in stays(s).items():
        limit = s.nodes[node].buffer_bytes
        events = [(until - tolerance(until), 0, -size, r) for _, until, size, r in there]
        filled = 0.0
        for time, kind, size, r in sorted(events + [(begin, 1, size, r) for begin, _, size, r in there]):
            filled += size
            if kind == 1 and filled > limit * (1 + 1e-9):
                violations.add(time, "12", f"{name(s, r)}: {filled:.9g} bytes that {s.nodes[node].name} only passes on are there at"
                                           f" {time:.9g} us; its buffer_bytes are {limit}")
                break
