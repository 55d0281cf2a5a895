"""How sends join into transfers through cut-through switches, and what they use of their links.

Rules 1, 4, 5, 6, 8 and 10 (io/conformance/README.md lists the rules).
"""
import bisect
import math
from collections import defaultdict

from schedule_file import equal, tolerance


class Violations:
    """Keeps the one that comes first in time."""

    def __init__(self):
        self.time, self.rule, self.sentence = math.inf, None, None

    def add(self, time, rule, sentence):
        if self.rule is None or time < self.time:
            self.time, self.rule, self.sentence = time, rule, sentence


def name(s, r):
    """The send in row r, for sentences."""
    link = s.links[s.link[r]]
    number = f" in transfer {s.transfer[r]}" if s.transfer[r] >= 0 else ""
    return (f"chunk {s.chunk[r]} over link {s.link[r]} ({s.nodes[link.src].name} -> {s.nodes[link.dst].name})"
            f" from {s.start[r]:.9g} us{number}")


def at_one_instant(events):
    """The (time, ...) of `events` in parts that are one instant each."""
    events, begin = sorted(events), 0
    for i in range(1, len(events) + 1):
        if i == len(events) or events[i][0] - events[i - 1][0] > tolerance(events[i][0]):
            yield events[begin:i]
            begin = i


class Transfers:
    """`entered[r]` is the crossing at the far end of send r: (sends that enter a cut-through switch, sends that leave it), all
    of one chunk at one instant. None where the send ends at a GPU or at a store-and-forward switch."""

    def __init__(self, s, violations):
        self.s, self.violations = s, violations
        self.entered = [None] * len(s.chunk)
        self.left = [None] * len(s.chunk)
        self.uses = [[] for _ in s.links]  # per link: (start us, end us, GB/s, row)
        self.starts = [[] for _ in s.links]  # per link with a message cost: (start us, row)
        numbered, unnumbered = defaultdict(list), []
        for r, n in enumerate(s.transfer):
            self.check_operation(r)
            if n >= 0:
                numbered[n].append(r)
            else:
                unnumbered.append(r)
        for n, rows in numbered.items():
            self.join_numbered(n, rows)
        self.join_unnumbered(unnumbered)
        self.check_ways()
        self.check_links()

    def add(self, r, rule, sentence):
        self.violations.add(self.s.start[r], rule, f"{name(self.s, r)}: {sentence}")

    def check_operation(self, r):
        s = self.s
        if s.op[r] == 0:
            return
        if not s.chunks[s.chunk[r]].reduce:
            self.add(r, "9", "op is 1, but the chunk is not reduced")
        far = s.nodes[s.links[s.link[r]].dst]
        if far.gpu is None and not far.reduce:
            self.add(r, "10", f"op is 1, but {far.name} cannot add")

    def check_ways(self):
        """No transfer comes to a switch twice, but a sum for several GPUs that was added up (op 1) in between, or there at first, may.
        Where several sends without a number enter at once, which of them goes on is free."""
        s = self.s
        for r, crossing in enumerate(self.entered):
            if not crossing:
                continue
            chunk, node = s.chunks[s.chunk[r]], s.links[s.link[r]].dst
            comes_down = chunk.reduce and len(chunk.destinations) > 1
            seen, behind = set(), [(r, False, False)]  # (row, whether it was added up since, whether it came to the switch since)
            while behind:
                at, added, again = behind.pop()
                before = self.left[at]
                if before is None or (len(before[0]) > 1 and s.transfer[before[0][0]] < 0):
                    continue
                for b in set(before[0]):
                    state = (b, added or s.op[b] == 1, again)
                    if s.links[s.link[b]].dst == node:
                        if b == r or again or not (comes_down and state[1]):
                            self.add(r, "4", f"its transfer has passed {s.nodes[node].name} before")
                            continue
                        state = (b, state[1], True)
                    if state not in seen:
                        seen.add(state)
                        behind.append(state)

    # Transfers with a number.

    def join_numbered(self, n, rows):
        s = self.s
        on_link = defaultdict(list)
        for r in rows:
            on_link[s.link[r]].append(r)
        first = rows[0]
        chunks = sorted(s.chunk[r] for r in on_link[s.link[first]])
        for link, members in on_link.items():
            lead = members[0]
            here = sorted(s.chunk[r] for r in members)
            if here != chunks or len(set(here)) != len(here):
                self.add(lead, "4", f"the transfer carries chunks {here} here and {chunks} over link {s.link[first]}; it has"
                                    " to carry the same over each of its links, each once")
                return
            for r in members:
                if not (equal(s.start[r], s.start[lead]) and equal(s.end[r], s.end[lead])
                        and equal(s.arrival[r], s.arrival[lead])):
                    self.add(r, "4", f"chunk {s.chunk[lead]} of the same transfer has other times on this link")
                    return
                if s.rate[r] != s.rate[first] and not (math.isnan(s.rate[r]) and math.isnan(s.rate[first])):
                    self.add(r, "4", f"rate_GBps is {s.rate[r]} here and {s.rate[first]} elsewhere; a transfer has one rate")
                    return
        leads = {link: members[0] for link, members in on_link.items()}
        if not self.cross_numbered(n, on_link, leads):
            return
        rate = None if math.isnan(s.rate[first]) else s.rate[first]
        self.run(list(leads.values()), sum(s.chunks[c].bytes for c in chunks), rate)

    def cross_numbered(self, n, on_link, leads):
        """Joins the transfer's links at cut-through switches; whether they make one transfer."""
        s = self.s
        passing = defaultdict(list)  # cut-through switch -> (time there, enters 0 or leaves 1, link)
        for link in on_link:
            start = s.start[leads[link]]
            if s.nodes[s.links[link].src].cut_through:
                passing[s.links[link].src].append((start, 1, link))
            if s.nodes[s.links[link].dst].cut_through:
                passing[s.links[link].dst].append((start + s.links[link].latency, 0, link))
        first = min(leads.values(), key=lambda r: s.start[r])
        if all(s.nodes[s.links[link].src].cut_through for link in on_link):
            self.add(first, "4", "its transfer starts at no GPU and at no store-and-forward switch")
            return False
        passed = defaultdict(list)  # link -> those that pass a switch with it
        for switch, events in passing.items():
            # Those at which nothing enters come first: they say what is wrong.
            for instant in sorted(at_one_instant(events), key=lambda each: min(leaves for _, leaves, _ in each), reverse=True):
                if not self.cross_at_instant(s.nodes[switch], instant, on_link, leads):
                    return False
                links = [link for _, _, link in instant]
                for link in links:
                    passed[link] += links
        reached, frontier = {s.link[first]}, [s.link[first]]
        while frontier:
            joined = set(passed[frontier.pop()]) - reached
            reached |= joined
            frontier.extend(joined)
        apart = [link for link in on_link if link not in reached]
        if apart:
            self.add(leads[apart[0]], "4", "no cut-through switch joins it with the other sends of its transfer")
        return not apart

    def cross_at_instant(self, node, instant, on_link, leads):
        """Rules 4, 5 and 10 where a transfer with a number passes a switch; whether it may."""
        s = self.s
        ins = [(time, link) for time, leaves, link in instant if not leaves]
        outs = [link for _, leaves, link in instant if leaves]
        if not ins:
            self.add(leads[outs[0]], "4", f"no send of its transfer enters {node.name} then")
            return False
        enters, first = ins[0]
        if not outs:
            rule = "10" if s.op[leads[first]] == 1 else "5"
            self.add(leads[first], rule, f"it enters {node.name} at {enters:.9g} us, and no send of its transfer leaves it then")
            return False
        if len(outs) > 1 and not node.multicast:
            self.add(leads[outs[1]], "5", f"{node.name} cannot multicast, but {len(outs)} sends leave it")
        for time, link in ins[1:]:
            if not node.reduce or not all(s.op[r] == 1 for _, l in ins for r in on_link[l]):
                self.add(leads[link], "10", f"{len(ins)} sends of one transfer enter {node.name}; that takes a switch with"
                                            " reduce, and op 1 on each of them")
                return False
            if not equal(time, enters):
                self.add(leads[link], "10", f"it enters {node.name} at {time:.9g} us, link {first} of its transfer at {enters:.9g} us")
                return False
        for link in outs:
            if not equal(s.start[leads[link]], enters):
                self.add(leads[link], "4", f"its transfer enters {node.name} at {enters:.9g} us")
                return False
        of_chunk = defaultdict(lambda: ([], []))
        for _, leaves, link in instant:
            for r in on_link[link]:
                of_chunk[s.chunk[r]][leaves].append(r)
        for crossing in of_chunk.values():
            self.cross(*crossing)
        return True

    def cross(self, ins, outs):
        crossing = (ins, outs)
        for r in ins:
            self.entered[r] = crossing
        for r in outs:
            self.left[r] = crossing

    # Sends without a number: paired by chunk, switch and time.

    def join_unnumbered(self, rows):
        s = self.s
        passing = defaultdict(list)  # (chunk, cut-through switch) -> (time there, enters 0 or leaves 1, row)
        for r in rows:
            if not math.isnan(s.rate[r]):
                self.add(r, "4", "a send with a rate needs a transfer number")
            link = s.links[s.link[r]]
            if s.nodes[link.src].cut_through:
                passing[s.chunk[r], link.src].append((s.start[r], 1, r))
            if s.nodes[link.dst].cut_through:
                passing[s.chunk[r], link.dst].append((s.start[r] + link.latency, 0, r))
        for (_, switch), events in passing.items():
            for instant in at_one_instant(events):
                self.pair(s.nodes[switch], instant)
        done = [False] * len(s.chunk)
        for r in rows:
            if not done[r]:
                self.run_component(r, done)

    def pair(self, node, events):
        """`events` happen at one instant. Where several sends enter, only equally long ones can belong together."""
        s = self.s
        if sum(1 for _, leaves, _ in events if not leaves) > 1:
            events = sorted(events, key=lambda e: s.end[e[2]] - s.start[e[2]])
            begin = 0
            for i in range(1, len(events) + 1):
                lengths = [s.end[e[2]] - s.start[e[2]] for e in events[i - 1:i + 1]]
                if i == len(events) or lengths[1] - lengths[0] > 2 * tolerance(s.end[events[i][2]]):
                    self.pair_alike(node, events[begin:i])
                    begin = i
        else:
            self.pair_alike(node, events)

    def pair_alike(self, node, events):
        s = self.s
        entering = [(time, r) for time, leaves, r in events if not leaves]
        ins, outs = [r for _, r in entering], [r for _, leaves, r in events if leaves]
        for r in outs:
            if not any(equal(time, s.start[r]) for time, _ in entering):
                self.add(r, "4", f"no send of the chunk enters {node.name} at {s.start[r]:.9g} us that it could continue")
                return
        if len(outs) < len(ins):
            self.violations.add(events[0][0], "5", f"{name(s, ins[-1])}: {len(ins)} sends of the chunk enter {node.name} at"
                                                   f" {events[0][0]:.9g} us, and {len(outs)} leave it")
        elif len(outs) > len(ins) and not node.multicast:
            self.add(outs[-1], "5", f"{node.name} cannot multicast: {len(ins)} sends enter it and {len(outs)} leave it")
        if len(ins) > 1 and s.chunks[s.chunk[ins[0]]].reduce:
            self.add(ins[1], "4", f"several sends of a chunk that is reduced enter {node.name} at one instant: they need"
                                  " transfer numbers")
        self.cross(ins, outs)

    def run_component(self, r, done):
        """All sends that crossings connect with r run at one rate."""
        s = self.s
        done[r] = True
        members, several = [r], False
        for member in members:  # grows
            for crossing in (self.entered[member], self.left[member]):
                if crossing:
                    several = several or len(crossing[0]) > 1
                    for other in crossing[0] + crossing[1]:
                        if not done[other]:
                            done[other] = True
                            members.append(other)
        if several:
            links = [s.links[s.link[m]] for m in members]
            if any(link.message > 0 or link.steps for link in links):
                self.add(r, "4", "several sends of the chunk enter a switch at one instant, and a link among them has a message"
                                 " cost or bandwidth steps: they need transfer numbers")
                return
            self.check_bottlenecks(members, min(link.bandwidth for link in links))
        self.run(members, s.chunks[s.chunk[r]].bytes, None)

    def check_bottlenecks(self, members, rate):
        """Some pairing gives each transfer a link as slow as the rate.

        Disjoint ways from all first sends to different slow ones exist if and only if every send that is not slow can be
        matched with itself (unless it is a first send) or with one that may continue it, each used once (Ingleton and Piff).
        """
        s = self.s
        slow = {m for m in members if s.links[s.link[m]].bandwidth <= rate * (1 + 1e-12)}
        match = {m: m for m in members if self.left[m]}
        owner = dict(match)  # the other way round
        for first in members:
            if not self.left[first] and first not in slow and not self.augment(first, slow, match, owner):
                self.add(first, "4", f"every link of its transfer is faster than {rate} GB/s, at which it runs")
                return

    def augment(self, first, slow, match, owner):
        """Matches `first` by a path that ends where a slow send gives its match up."""
        came_from, frontier = {}, [first]
        for m in frontier:  # grows: breadth first
            for after in ([m] if self.left[m] else []) + (self.entered[m][1] if self.entered[m] else []):
                if after in came_from:
                    continue
                came_from[after] = m
                if owner[after] not in slow:
                    frontier.append(owner[after])
                    continue
                del match[owner[after]]
                while after is not None:
                    m = came_from[after]
                    owner[after], match[m], after = m, after, match.get(m)
                return True
        return False

    # Rates and times.

    def run(self, rows, size, rate):
        """Rules 1 and 4: `rows` are the transfer's sends, one a link; checks their times, records what they use."""
        s = self.s
        links = [s.links[s.link[r]] for r in rows]
        message = max(link.message for link in links)
        if rate is None and any(link.steps for link in links):
            starts = [s.start[r] for r in rows]
            profile = flow(links, starts, size, message)
            # Where the last byte leaves as a link goes down, rounding decides whether it does so before: either is right.
            just_before = flow(links, starts, size * (1 - 1e-12), message)
            if just_before is not None and equal(s.end[rows[0]], starts[0] + just_before[-1][1]):
                profile = just_before
            if profile is None:
                self.add(rows[0], "1", "its links stay down: it never ends")
                return
        else:
            least = min(link.peak for link in links)
            if rate is not None and rate > least * (1 + 1e-9):
                slow = min(range(len(rows)), key=lambda i: links[i].peak)
                self.add(rows[slow], "4", f"its rate is {rate} GB/s, the link's bandwidth {least} GB/s")
            profile = [(0.0, message + size / (1000 * (rate or least)), rate or least)]
        duration = profile[-1][1]
        for r, link in zip(rows, links):
            start = s.start[r]
            if not equal(s.end[r], start + duration):
                self.add(r, "1", f"end_us is {s.end[r]:.9g}; start, message cost, bytes and rate give {start + duration:.9g}")
            if not equal(s.arrival[r], start + duration + link.latency):
                self.add(r, "1", f"arrival_us is {s.arrival[r]:.9g}; end and latency give {start + duration + link.latency:.9g}")
            use = self.uses[s.link[r]]
            if len(profile) == 1:
                use.append((start, s.end[r], profile[0][2], r))
            else:
                use.extend((start + begin, start + end, gbps, r) for begin, end, gbps in profile)
            if link.message > 0:
                self.starts[s.link[r]].append((start, r))

    def check_links(self):
        s = self.s
        for l, link in enumerate(s.links):
            self.check_sum(self.uses[l], link.steps or [(0.0, link.bandwidth)], "1", f"link {l}")
            busy = -math.inf
            for start, r in sorted(self.starts[l]):
                if busy - start > tolerance(start):
                    self.add(r, "8", f"the first {link.message} us of its transfer overlap those of another, until {busy:.9g} us")
                busy = max(busy, start) + link.message
        for group, links, limit in s.groups:
            self.check_sum([use for l in links for use in self.uses[l]], [(0.0, limit)], "6", f"shared bandwidth '{group}'")

    def check_sum(self, uses, steps, rule, what):
        """The rates sum to at most the bandwidth; the backlog allows for rounded times."""
        uses.sort()
        latest = -math.inf
        for start, end, _, _ in uses:
            if start < latest:
                break
            latest = end
        else:
            if len(steps) == 1 and (rule == "1" or all(use[2] <= steps[0][1] for use in uses)):
                return  # one after another
        events = [(end, 0, -gbps, None) for _, end, gbps, _ in uses] + [(start, 2, gbps, r) for start, _, gbps, r in uses]
        events += [(time, 1, gbps, None) for time, gbps in steps]
        events.sort(key=lambda event: event[:2])
        peak = max(gbps for _, gbps in steps)
        last, total, active, bandwidth, backlog, row = 0.0, 0.0, 0, steps[0][1], 0.0, None
        for time, kind, gbps, r in events:
            backlog = max(0.0, backlog + (total - bandwidth) * (time - last))
            if backlog > peak * tolerance(time):
                self.add(row, rule, f"the rates on {what} sum to {total:.9g} GB/s before {time:.9g} us; it has {bandwidth:.9g} GB/s")
                return
            last = time
            if kind == 1:
                bandwidth = gbps
                continue
            active += 1 if kind == 2 else -1
            total = total + gbps if active else 0.0
            row = r if kind == 2 else row


def flow(links, starts, size, message):
    """[(from, to, GB/s)], in us after the start, of a transfer that takes the least bandwidth of its links at each instant of
    its first sender's time; None if it never ends."""
    origin = min(starts)
    offsets = [start - origin for start in starts]
    changes = {time - origin - offset for link, offset in zip(links, offsets) for time, _ in link.steps or ()}
    profile, now, left = [], 0.0, size
    for then in sorted({message} | {time for time in changes if time > 0}) + [math.inf]:
        if then <= now:
            continue
        middle = origin + (now + then) / 2 if then < math.inf else origin + now + 1
        gbps = min(link.bandwidth if link.steps is None
                   else link.steps[bisect.bisect_right(link.steps, (middle + offset, math.inf)) - 1][1]
                   for link, offset in zip(links, offsets))
        if now >= message and gbps > 0 and left <= 1000 * gbps * (then - now):
            return profile + [(now, now + left / (1000 * gbps), gbps)]
        if now >= message and gbps > 0:
            left -= 1000 * gbps * (then - now)
        profile.append((now, then, gbps))
        now = then
    return None
