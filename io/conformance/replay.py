#!/usr/bin/env python3
"""Reference replay of `rondo-schedule` files (JSON, versions 1 and 2), written from io/FORMATS.md alone.

    replay.py FILE...

prints `valid <finish_us>` or `invalid: rule N: <what is wrong>` for each file, after its name where there are several. Exit
code 0: all are valid; 65: one is not; 64: no file is given; 66: a file cannot be read. Python's standard library suffices.
"""
import bisect
import heapq
import math
import sys
from collections import defaultdict

sys.dont_write_bytecode = True  # leave the source folder as it is

import certificates  # noqa: E402
import relay_memory  # noqa: E402
from schedule_file import Invalid, equal, read_schedule, tolerance  # noqa: E402
from transfers import Transfers, Violations, name  # noqa: E402


class Stay:
    """Data in a store-and-forward switch: what has arrived with the sends in `rows`, until its last onward send."""

    def __init__(self, row, arrival, there):
        self.rows, self.arrival, self.until, self.sent = [row], arrival, arrival, False
        self.there = there  # the arrival, or the time of its cause where that is later by less than the tolerance


class Replay:
    """Rules 2, 3, 7, 9 and 10: one chunk at a time, in causal order."""

    def __init__(self, s):
        self.s = s
        self.violations = Violations()
        self.transfers = Transfers(s, self.violations)
        self.stays = defaultdict(list)  # store-and-forward switch -> (from us, until us, bytes, row)
        self.src = [s.links[l].src for l in s.link]
        self.dst = [s.links[l].dst for l in s.link]
        self.latest = [t + tolerance(t) for t in s.start]  # what arrives up to then serves a send
        self.finish = 0.0
        for r, l in enumerate(s.link):
            if s.links[l].closed:
                self.add(r, "11", "an end of it is a GPU outside the group, and relay is none")
        rows_of = [[] for _ in s.chunks]
        for r, c in enumerate(s.chunk):
            rows_of[c].append(r)
        for c, rows in enumerate(rows_of):
            served = self.reduced(c, rows) if s.chunks[c].reduce else self.plain(c, rows)
            for gpu in s.chunks[c].destinations:
                if gpu in served:
                    self.finish = max(self.finish, served[gpu])
                else:
                    self.violations.add(math.inf, "7", f"chunk {c} never is whole at GPU {gpu}, which wants it")
        self.check_buffers()
        relay_memory.check(s, self.violations)

    def add(self, r, rule, sentence):
        self.violations.add(self.s.start[r], rule, f"{name(self.s, r)}: {sentence}")

    def starts_transfer(self, r):
        return not self.s.nodes[self.src[r]].cut_through

    # A chunk that is not reduced: a GPU holds it or not.

    def plain(self, c, rows):
        """When each GPU has the chunk. A send happens when what has happened before serves it: so sends that rest on each
        other in a circle never do, however short they are."""
        s, nodes = self.s, self.s.nodes
        held, served, queues, waiting = {}, {}, defaultdict(list), defaultdict(list)
        happened = set()
        # (time, 0: arrives, 1: is due, 2: may take another copy, row or -1, node)
        events = [(ready, 0, -1, s.node_of_gpu[gpu]) for gpu, (ready, has) in s.chunks[c].initial.items() if has]
        events += [(self.latest[r], 1, r, self.src[r]) for r in rows if self.starts_transfer(r)]
        heapq.heapify(events)

        def happen(r, now):
            frontier = [r]
            while frontier:
                r = frontier.pop()
                if r in happened:
                    continue
                happened.add(r)
                if self.transfers.entered[r]:
                    frontier.extend(self.transfers.entered[r][1])
                elif not nodes[self.dst[r]].cut_through:
                    heapq.heappush(events, (max(s.arrival[r], now), 0, r, self.dst[r]))

        def start(r, node, copies):
            """Whether send r finds the chunk at the node that it leaves."""
            if nodes[node].gpu is not None:
                if node not in held or held[node] > self.latest[r]:
                    return False
                happen(r, max(s.start[r], held[node]))
                return True
            stay = self.take(queues[node], r, copies and nodes[node].multicast)
            if stay:
                happen(r, max(s.start[r], stay.there))
            return stay is not None

        while events:
            time, kind, r, node = heapq.heappop(events)
            if kind > 0:
                if r not in happened and not start(r, node, kind == 2) and kind == 1:
                    waiting[node].append(r)
                    heapq.heappush(events, (time, 2, r, node))
                continue
            if nodes[node].gpu is None:
                queues[node].append(Stay(r, s.arrival[r], time))
            elif node in held:
                continue
            else:
                held[node] = time
                served[nodes[node].gpu] = s.arrival[r] if r >= 0 else time
            waiting[node] = [w for w in waiting[node] if w not in happened and time <= self.latest[w] and not start(w, node, False)]
            for w in waiting[node]:
                heapq.heappush(events, (self.latest[w], 2, w, node))
        missing = [r for r in rows if r not in happened]
        for r in missing:
            node = nodes[self.src[r]]
            if node.gpu is not None:
                when = f"holds it from {held[self.src[r]]:.9g} us" if self.src[r] in held else "never holds it"
                self.add(r, "2", f"{node.name} {when}")
            elif node.stores:
                self.add(r, "3", f"nothing that has arrived at {node.name} is left to be sent on")
        if missing and all(nodes[self.src[r]].cut_through for r in missing):
            self.add(missing[0], "4", "no transfer from a GPU leads here")
        self.leave(queues, c)
        return served

    def take(self, queue, r, copies):
        """The data that send r takes on: the oldest that has not been sent on, else, with `copies`, the last."""
        i = len(queue)
        while i > 0 and not queue[i - 1].sent:  # those that were sent on are the first ones
            i -= 1
        if i == len(queue):
            if not queue or not copies:
                return None
            i -= 1
        queue[i].sent, queue[i].until = True, max(queue[i].until, self.s.start[r])
        return queue[i]

    def leave(self, queues, c):
        """Rule 5 at store-and-forward switches; keeps the stays for rule 3."""
        for node, queue in queues.items():
            for stay in queue:
                if not stay.sent:
                    self.violations.add(stay.arrival, "5", f"{name(self.s, stay.rows[0])}: it arrives at {self.s.nodes[node].name}"
                                                           f" at {stay.arrival:.9g} us and does not leave it")
                self.stays[node].append((stay.arrival, stay.until, self.s.chunks[c].bytes, stay.rows[0]))

    def check_buffers(self):
        for node, stays in self.stays.items():
            limit = self.s.nodes[node].buffer_bytes
            waits = [stay for stay in stays if stay[1] - stay[0] > tolerance(stay[1])]
            if waits and limit == 0:
                first = min(waits)
                self.violations.add(first[0], "3", f"{name(self.s, first[3])}: it waits in {self.s.nodes[node].name} from"
                                                   f" {first[0]:.9g} us until {first[1]:.9g} us; its buffer_bytes are 0")
                continue
            events = [(until - tolerance(until), 0, -size, r) for _, until, size, r in waits]
            filled = 0.0
            for time, _, size, r in sorted(events + [(begin, 1, size, r) for begin, _, size, r in waits]):
                filled += size
                if filled > limit * (1 + 1e-9):
                    self.violations.add(time, "3", f"{name(self.s, r)}: {filled:.9g} bytes wait in {self.s.nodes[node].name} at"
                                                   f" {time:.9g} us; its buffer_bytes are {limit}")
                    break

    # A chunk that is reduced: a GPU holds a set of contributions.

    def reduced(self, c, rows):
        """When each GPU's set is complete. What a send carries rests on all that has arrived where it starts, so the order is
        known from the times alone."""
        s, nodes, chunk = self.s, self.s.nodes, self.s.chunks[c]
        arriving, onward = defaultdict(list), defaultdict(list)
        for r in rows:
            if not nodes[self.dst[r]].cut_through:
                arriving[self.dst[r]].append(r)
            if nodes[self.src[r]].stores:
                onward[self.src[r]].append(r)
        for node in arriving:
            arriving[node].sort(key=lambda r: (s.arrival[r], s.link[r]))
        rests_on = {}  # row, or state: (GPU's node, how much has arrived, whether its own contribution is ready) -> its causes
        queues = {node: self.pair_stays(node, arriving[node], onward[node], rests_on)
                  for node in set(arriving) | set(onward) if nodes[node].stores}
        last = {}  # GPU's node -> its last state
        for r in rows:  # by start
            node = self.src[r]
            if nodes[node].gpu is not None:
                count = bisect.bisect_right(arriving[node], self.latest[r], key=lambda a: s.arrival[a])
                state = (node, count, chunk.initial.get(nodes[node].gpu, (0.0, 0))[0] <= self.latest[r])
                if state not in rests_on:
                    rests_on[state] = [last[node]] if node in last else []
                    rests_on[state] += arriving[node][last[node][1] if node in last else 0:count]
                    last[node] = state
                rests_on[r] = [state]
            elif nodes[node].cut_through:
                rests_on[r] = self.transfers.left[r][0] if self.transfers.left[r] else []
        carried = {}
        for item in self.causal_order(rests_on):
            if isinstance(item, tuple):
                node, count, ready = item
                until = math.inf if ready else -math.inf
                carried[item] = self.fold(chunk, nodes[node].gpu, arriving[node][:count], carried, until)[-1][1]
                continue
            node = nodes[self.src[item]]
            carried[item] = 0
            for cause in rests_on[item]:
                twice = carried[item] & carried[cause]
                if twice:
                    self.add(cause, "10", f"it brings contributions of {self.text(chunk, twice)} to {node.name} a second time")
                carried[item] |= carried[cause]
            if carried[item] == 0 and node.gpu is not None:
                self.add(item, "2", f"{node.name} holds nothing of it")
        self.leave(queues, c)
        served = {}
        for gpu in {nodes[n].gpu for n in arriving if nodes[n].gpu is not None} | set(chunk.initial):
            states = self.fold(chunk, gpu, arriving[s.node_of_gpu[gpu]], carried, math.inf, check=True)
            latest = 0.0
            for time, contributions in states:
                latest = max(latest, time)
                if contributions == chunk.full:
                    served[gpu] = latest
                    break
        return served

    def pair_stays(self, node, arriving, onward, rests_on):
        """Rule 3: an onward send takes the oldest arrival that was not sent on. What comes with op 1 is added to what is
        still waiting of the same kind."""
        s, queue, arrived, adding = self.s, [], 0, None
        for r in sorted(onward, key=lambda r: (s.start[r], s.link[r])) + [None]:
            while arrived < len(arriving) and (r is None or s.arrival[arriving[arrived]] <= self.latest[r]):
                a = arriving[arrived]
                arrived += 1
                if s.op[a] == 1 and adding and not adding.sent:
                    adding.rows.append(a)
                    continue
                queue.append(Stay(a, s.arrival[a], s.arrival[a]))
                if s.op[a] == 1:
                    adding = queue[-1]
            if r is None:
                break
            stay = self.take(queue, r, s.nodes[node].multicast)
            if stay is None:
                self.add(r, "3", f"nothing that has arrived at {s.nodes[node].name} is left to be sent on")
            rests_on[r] = stay.rows if stay else []
        return queue

    def causal_order(self, rests_on):
        open_causes = {item: len(causes) for item, causes in rests_on.items()}
        effects = defaultdict(list)
        for item, causes in rests_on.items():
            for cause in causes:
                effects[cause].append(item)
        order = [item for item, count in open_causes.items() if count == 0]
        for cause in order:  # grows
            for item in effects[cause]:
                open_causes[item] -= 1
                if open_causes[item] == 0:
                    order.append(item)
        circle = [item for item, count in open_causes.items() if count > 0]
        if circle:
            self.add(min(r for r in circle if not isinstance(r, tuple)), "9", "it rests on itself, in a circle of sends at one"
                                                                              " instant")
        return order

    def fold(self, chunk, gpu, arrivals, carried, until, check=False):
        """[(time, set)] at a GPU: its own contribution if that is ready, and what arrives, in order. A copy comes before the additions that
        are there at the same time, within the tolerance."""
        s = self.s
        ready, own = chunk.initial.get(gpu, (0.0, 0))
        events = [(ready, 1, -1)] if ready <= until else []
        for a in arrivals:
            events.append((s.arrival[a], 1, a) if s.op[a] else (s.arrival[a] - tolerance(s.arrival[a]), 0, a))
        events.sort()
        contributions, states = 0, [(0.0, 0)]
        for _, adds, a in events:
            comes = carried.get(a, 0) if a >= 0 else own
            if adds:
                if check and contributions & comes:
                    self.add(a, "9", f"GPU {gpu} gets contributions of {self.text(chunk, contributions & comes)} a second time")
                contributions |= comes
            else:
                if check and contributions & ~comes:
                    self.add(a, "9", f"it replaces what GPU {gpu} holds, but lacks {self.text(chunk, contributions & ~comes)}")
                contributions = comes
            states.append((s.arrival[a] if a >= 0 else ready, contributions))
        return states

    @staticmethod
    def text(chunk, contributions):
        return "GPU " + ", ".join(str(gpu) for i, gpu in enumerate(chunk.sources) if contributions >> i & 1)


def verify(path):
    """The finish time (us). Throws Invalid."""
    s = read_schedule(path)
    replay = Replay(s)
    if replay.violations.rule:
        raise Invalid(replay.violations.rule, replay.violations.sentence)
    if not equal(replay.finish, s.finish):
        raise Invalid("finish", f"finish_us is {s.finish}, but the sends end at {replay.finish}")
    certificates.check_demand(s)
    certificates.check_bound(s, replay.finish)
    return replay.finish


def main(paths):
    if not paths or paths[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 64
    code = 0
    for path in paths:
        try:
            verdict = f"valid {verify(path)!r}"
        except Invalid as error:
            verdict, code = f"invalid: {error}", 65
        except OSError as error:
            print(f"{path}: {error.strerror}", file=sys.stderr)
            return 66
        print(f"{path}: {verdict}" if len(paths) > 1 else verdict)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
