"""Prices where messages cost (FORMATS.md 3), in exact fractions."""
import heapq
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
    for chunk in s.chunks:
        if not (chunk.held if chunk.reduce else len(chunk.sources) != 1):
            data += [(Fraction(chunk.bytes), [(g, Fraction(chunk.ready[g])) for g in chunk.sources if g != d], d)
                     for d in chunk.destinations if gpu in (-1, d)]
    return data


class Parts:
    """Periods in `parts` equally long ones each: when they begin, and what a link that is paid for all the time has cost by then."""

    def __init__(self, prices, parts):
        self.begins, self.end, self.period = [], prices.end, []
        for p, begin in enumerate(prices.begins):
            self.begins += [begin + (prices.end_of(p) - begin) * i / parts for i in range(parts)]
            self.period += [p] * parts
        self.prices = prices

    def last_before(self, time):
        return max(j for j, begin in enumerate(self.begins) if begin < time)

    def last_by(self, time):
        return max(j for j, begin in enumerate(self.begins) if begin <= time)

    def paid_by(self, link, time):
        """The integral of the price of a link from 0 to `time`, in units of prices."""
        prices = self.prices
        return sum(prices.of[p, link] * (min(time, prices.end_of(p)) - begin) for p, begin in enumerate(prices.begins) if begin < time)


def cheapest_messages(ways, parts):
    """(place, part) -> (another place, part in which it is there) -> what a byte pays at least for such a message."""
    latencies = {Fraction(0)} | {us for way in ways for us in way.delays + [way.latency]}
    times = sorted({end - us for end in parts.begins + [parts.end] for us in latencies if end >= us})
    least = defaultdict(dict)
    for way in ways:
        paid = [sum(parts.paid_by(l, time + delay) for l, delay in zip(way.links, way.delays)) for time in times]
        begun = [parts.last_by(time) for time in times]
        for last, z in enumerate(times):
            if z == 0 or z + way.latency > parts.end:
                continue
            there = way.end, parts.last_before(z + way.latency)
            for first, x in enumerate(times):
                span = z - x - way.message + parts.end * ROUNDING
                if x >= z or span <= 0:
                    break
                onward, price = least[way.begin, begun[first]], (paid[last] - paid[first]) / span
                onward[there] = min(onward.get(there, math.inf), price)
    return least


def least_payments(messages, nodes, count, destination):
    """For each part, the last one at its place: what a byte at each node pays to be at the destination in time."""
    later, found = [math.inf] * nodes, [None] * count
    for j in reversed(range(count)):
        now = list(later)
        for v in range(nodes):
            now[v] = min([now[v]] + [price + found[q][w] for (w, q), price in messages.get((v, j), {}).items() if q > j])
        now[destination] = 0
        # Messages within the part, one after another.
        queue = [(paid, n) for n, paid in enumerate(now) if paid < math.inf]
        heapq.heapify(queue)
        into = defaultdict(list)
        for v in range(nodes):
            for (w, q), price in messages.get((v, j), {}).items():
                if q == j:
                    into[w].append((v, price))
        while queue:
            paid, w = heapq.heappop(queue)
            for v, price in into[w] if paid == now[w] else ():
                if paid + price < now[v]:
                    now[v] = paid + price
                    heapq.heappush(queue, (now[v], v))
        later = found[j] = now
    return found


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
    parts = Parts(prices, number_of_parts)
    messages = cheapest_messages(ways_of(s, backwards), parts)
    payments, paid = {}, Fraction(0)
    for size, sources, destination in data_that_count(s, gpu, backwards):
        if destination not in payments:
            payments[destination] = least_payments(messages, len(s.nodes), len(parts.begins), s.node_of_gpu[destination])
        paid += size * max((payments[destination][parts.last_by(ready)][s.node_of_gpu[g]] if ready < prices.end else math.inf
                            for g, ready in sources), default=0) / prices.unit
    return prices.bound(paid, -MARGIN)
