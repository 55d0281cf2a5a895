"""Prices where messages cost (FORMATS.md 3)."""
import bisect
import itertools
import math
from collections import defaultdict
from fractions import Fraction

from schedule_file import check_keys, index
from timed_cuts import TIMED_PRICES, TimedPrices, fail

MOST_PARTS = 1024
MARGIN = Fraction(1, 10 ** 8)
ROUNDING = Fraction(1, 10 ** 13)


class Way:
    """Links one after another from a place over cut-through switches to another place: `delays` are the latencies before each of
    them, `latency` that of all, `message` the greatest message cost of any."""

    def __init__(self, s, links, begin, end):
        self.links, self.begin, self.end = links, begin, end
        self.delays, self.latency = [], Fraction(0)
        for l in links:
            self.delays.append(self.latency)
            self.latency += Fraction(s.links[l].latency)
        self.message = max(Fraction(s.links[l].message) for l in links)


def ways_of(s, backwards):
    """Backwards, links are turned round."""
    leaving = defaultdict(list)
    for l, link in enumerate(s.links):
        if not link.closed:
            near, far = (link.dst, link.src) if backwards else (link.src, link.dst)
            leaving[near].append((l, far))
    ways = []

    def extend(links, nodes):
        for l, to in leaving[nodes[-1]]:
            if to not in nodes and s.nodes[to].cut_through:
                extend(links + [l], nodes + [to])
            elif to not in nodes:
                ways.append(Way(s, links + [l], nodes[0], to))
    for n, node in enumerate(s.nodes):
        if not node.cut_through:
            extend([], [n])
    return ways


def data_that_count(s, gpu, backwards):
    """(bytes, [(source, ready time)], destination), of which the farthest source counts; gpu -1: of all pairs. Backwards, a chunk is a
    datum of its destination."""
    pairs = all(len(chunk.destinations) == 1 and len(chunk.sources) == 1 for chunk in s.chunks)
    sums = all(chunk.reduce and len(chunk.destinations) == 1 and not chunk.held for chunk in s.chunks)
    data = []
    if backwards:
        if not (sums or pairs):
            fail("message prices of a source are for data or sums with one destination each")
        for chunk in s.chunks:
            source = chunk.destinations[0]
            others = [g for g in chunk.sources if g != source]
            if gpu < 0 and len(others) != 1:
                fail("message prices of all sources are for chunks with one source besides their destination")
            data += [(Fraction(chunk.bytes), [(source, Fraction(0))], g) for g in others if gpu in (-1, g)]
        return data
    if gpu < 0 and not pairs:
        fail("message prices of all destinations are for data with one source and one destination each")
    cut_through = {n for n, node in enumerate(s.nodes) if node.cut_through}
    linked = any(link.src in cut_through and link.dst in cut_through for link in s.links)
    come_down = linked and any(s.nodes[n].reduce for n in cut_through)
    for chunk in s.chunks:
        if chunk.reduce and come_down and len(chunk.destinations) > 1:
            continue
        if not (chunk.held if chunk.reduce else len(chunk.sources) != 1):
            data += [(Fraction(chunk.bytes), [(g, Fraction(chunk.ready[g])) for g in chunk.sources if g != d], d)
                     for d in chunk.destinations if gpu in (-1, d)]
    return data


class Parts:
    """Periods in `parts` equally long ones each: when they begin, and what a link that is paid for all the time has cost by then, in
    units of prices."""

    def __init__(self, prices, parts, links):
        self.begins, self.end = [], prices.end
        for p, begin in enumerate(prices.begins):
            self.begins += [begin + (prices.end_of(p) - begin) * i / parts for i in range(parts)]
        self.periods = [float(begin) for begin in prices.begins]
        self.price = [[float(prices.of[p, l]) for p in range(prices.count)] for l in range(links)]
        self.paid = []
        for price in self.price:
            lengths = [float(prices.end_of(p) - begin) for p, begin in enumerate(prices.begins)]
            self.paid.append([0.0, *itertools.accumulate(us * each for us, each in zip(lengths, price))])

    def before(self, time):
        """The last part that begins before `time`."""
        return bisect.bisect_left(self.begins, time) - 1

    def last_by(self, time):
        return bisect.bisect_right(self.begins, time) - 1

    def paid_by(self, link, time):
        p = bisect.bisect_right(self.periods, time) - 1
        return self.paid[link][p] + self.price[link][p] * (time - self.periods[p])


class Messages:
    """Those on all ways. Times are told apart exactly, what is paid is rounded to 1e-12 or so."""

    def __init__(self, ways, parts):
        self.parts, self.rounding = parts, float(parts.end * ROUNDING)
        latencies = {Fraction(0)} | {us for way in ways for us in way.delays + [way.latency]}
        times = []
        for time in sorted({end - us for end in parts.begins + [parts.end] for us in latencies if end >= us}):
            if not times or time - times[-1] > parts.end * ROUNDING:
                times.append(time)
        self.times = [float(time) for time in times]
        self.first_of = [bisect.bisect_left(times, begin) for begin in parts.begins] + [len(times)]
        there = {us: [parts.before(time + us) for time in times if time + us <= parts.end] for us in {way.latency for way in ways}}
        self.from_node = defaultdict(list)
        for way in ways:
            paid = [sum(parts.paid_by(l, time + float(us)) for l, us in zip(way.links, way.delays)) for time in self.times]
            self.from_node[way.begin].append((way.end, float(way.message), paid, there[way.latency]))

    def least_payments(self, nodes, destination):
        """For each part, what a byte at each node pays to be at the destination in time."""
        found = [None] * len(self.parts.begins)
        later = [math.inf] * nodes
        for j in reversed(range(len(found))):
            found[j] = now = list(later)
            now[destination] = 0.0
            within = []  # that arrive in the part in which they start
            for v, ways in self.from_node.items():
                for to, message, paid, there in ways if v != destination else ():
                    within += [(v, to, price) for price in self.pay(j, now, v, to, message, paid, there, found)]
            changes = True
            while changes:
                changes = False
                for v, to, price in within:
                    if v != destination and price + now[to] < now[v]:
                        now[v], changes = price + now[to], True
            later = now
        return found

    def pay(self, j, now, v, to, message, paid, there, found):
        """The least of all messages that start in part j and arrive later goes to `now`; of others it is returned."""
        least = math.inf
        for x in range(self.first_of[j], self.first_of[j + 1]):
            earliest = self.times[x] + message - self.rounding
            for z in range(max(x + 1, bisect.bisect_right(self.times, earliest)), len(there)):
                span = self.times[z] - earliest
                if there[z] == j:
                    least = min(least, (paid[z] - paid[x]) / span)
                    continue
                onward = found[there[z]][to]
                if onward >= now[v]:
                    break  # it pays no less from later parts on
                now[v] = min(now[v], (paid[z] - paid[x]) / span + onward)
        return [least] if least < math.inf else []


def message_prices_bound(s, certificate):
    """What bytes pay at least that come by messages one after another, against what links can earn by then. Backwards, links are
    turned round, and time counts from the end on."""
    backwards = "source" in certificate
    key = "source" if backwards else "destination"
    check_keys(certificate, "certificate", TIMED_PRICES | {key, "parts"}, TIMED_PRICES | {key, "parts"})
    gpu = index(certificate[key] + 1, len(s.node_of_gpu) + 1, f"certificate: {key} (or -1), plus 1,") - 1
    number_of_parts = index(certificate["parts"], 1 << 31, "certificate: parts")
    if not 1 <= number_of_parts <= MOST_PARTS:
        fail(f"a period has 1 to {MOST_PARTS} parts")
    if backwards and any(len({s.links[l].latency for l in links}) > 1 for _, links, _ in s.groups):
        fail("message prices of sources prove nothing where links of a group differ in latency")
    prices = TimedPrices(s, certificate)
    parts = Parts(prices, number_of_parts, len(s.links))
    messages = Messages(ways_of(s, backwards), parts)
    payments, paid = {}, Fraction(0)
    for size, sources, destination in data_that_count(s, gpu, backwards):
        if destination not in payments:
            payments[destination] = messages.least_payments(len(s.nodes), s.node_of_gpu[destination])
        most = max((payments[destination][parts.last_by(ready)][s.node_of_gpu[g]] if ready < prices.end else math.inf
                    for g, ready in sources), default=0.0)
        paid += size * Fraction(most) / prices.unit if most < math.inf else math.inf
    return prices.bound(paid, -MARGIN)
