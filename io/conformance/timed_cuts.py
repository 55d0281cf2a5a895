"""What certificates over time have in common, and joint cuts (FORMATS.md 3), in exact fractions."""

import bisect
import heapq
import itertools
import math
from collections import defaultdict
from fractions import Fraction

from schedule_file import Invalid, check_keys, index, number

TIMED_PRICES = {"kind", "from_us", "until_us", "place", "price"}
TOLERANCE = Fraction(1, 10 ** 12)
EXACT_LINKS = 6  # of a way, for which it is told when its byte is where


def fail(sentence):
    raise Invalid("certificate", sentence)


def bytes_that_start_open(s, gpu, alpha, backwards):
    """Of what a GPU wants (has for others), those that are with open nodes alone at first; a sum once."""
    sums = all(chunk.reduce and len(chunk.destinations) == 1 and not chunk.held for chunk in s.chunks)
    pairs = all(len(chunk.destinations) == 1 and len(chunk.sources) == 1 for chunk in s.chunks)
    if backwards and (not (sums or pairs) or any(link.steps for link in s.links)):
        fail("what is proven of a source is for data or sums with one destination each, without steps")
    amount = Fraction(0)
    for chunk in s.chunks:
        if backwards:
            separated = gpu in chunk.sources and chunk.destinations[0] != gpu and alpha[s.node_of_gpu[chunk.destinations[0]]] == 0
        else:
            homes = [chunk.holders(bit) for bit in range(chunk.full.bit_length())]
            separated = gpu in chunk.destinations and any(
                home and all(alpha[s.node_of_gpu[g]] <= (0 if g in chunk.told else chunk.ready[g]) for g in home) for home in homes)
        amount += Fraction(chunk.bytes) if separated else 0
    return amount


def counted_contributions(s, gpu, alpha, named):
    """Of the sums that a GPU wants: the bytes of those contributions of the sources named that start open, and when a byte at each node
    may be of one of these sources, of two, ..."""
    sums = [chunk for chunk in s.chunks if chunk.reduce and not chunk.held and gpu in chunk.destinations]
    ready, amount = {}, Fraction(0)
    for chunk in sums:
        for g in set(chunk.sources) & set(named):
            ready[g] = min(ready.get(g, math.inf), Fraction(chunk.ready[g]))
            amount += Fraction(chunk.bytes) if alpha[s.node_of_gpu[g]] <= chunk.ready[g] else 0
    if any(link.steps and not link.closed for link in s.links):
        fail("contributions are counted one by one only where bandwidths do not change")
    entering = [[] for _ in s.nodes]
    for link in s.links:
        if not link.closed:
            begins = s.nodes[link.src].gpu is not None or s.nodes[link.src].stores
            entering[link.dst].append((link.src, Fraction(link.latency) + (Fraction(link.message) if begins else 0)))

    def settled(first, fixed):
        """The least times from `first` on, over links that enter the nodes that are not fixed."""
        at, before = list(first), None
        while at != before:
            before = at
            at = [us if fixed[n] else min([us] + [at[m] + delay for m, delay in entering[n]]) for n, us in enumerate(at)]
        return at
    reached = [settled([ready[g] if n == s.node_of_gpu[g] else math.inf for n in range(len(s.nodes))], [False] * len(s.nodes))
               for g in sorted(ready)]
    adds = [node.gpu is not None or node.reduce for node in s.nodes]
    nth = [sorted(us) for us in zip(*reached)]
    counts = [settled([nth[n][k] if adds[n] else math.inf for n in range(len(s.nodes))], adds) for k in range(len(ready))]
    return amount, [[us[n] for us in counts if us[n] < math.inf] for n in range(len(s.nodes))]


class TimedPrices:
    """`of[period, link]` in `unit`-ths, groups included; `earned` by links that are never idle."""

    def __init__(self, s, certificate):
        self.begins = [Fraction(number(x, "certificate: from_us")) for x in certificate["from_us"]]
        self.end = Fraction(number(certificate["until_us"], "certificate: until_us"))
        places, values = certificate["place"], [Fraction(number(x, "certificate: price")) for x in certificate["price"]]
        if not self.begins or self.begins[0] != 0 or any(a >= b for a, b in zip(self.begins, self.begins[1:] + [self.end])):
            fail("periods have to begin at 0, to ascend and to end at until_us")
        if any(link.steps for link in s.links):
            fail("prices over time prove nothing where bandwidths change")
        links, self.count = len(s.links), len(self.begins)
        rows = links + len(s.groups)
        if len(places) != len(values) or any(value < 0 for value in values):
            fail("there has to be a price that is not negative for each place")
        for place, before in zip(places, [-1] + places):
            if index(place, self.count * rows, "certificate: place") <= before:
                fail("places have to ascend")
        # All are halves of halves: whole numbers of one small unit.
        self.unit = max((value.denominator for value in values), default=1)
        self.of, self.earned = defaultdict(int), Fraction(0)
        for place, value in zip(places, values):
            period, row = divmod(place, rows)
            members = [l for l in ([row] if row < links else s.groups[row - links][1]) if not s.links[l].closed]
            if not members:
                continue
            gbps = s.links[row].bandwidth if row < links else s.groups[row - links][2]
            for l in members:
                self.of[period, l] += int(value * self.unit)
            self.earned += value * 1000 * Fraction(gbps) * (self.end_of(period) - self.begins[period])

    def end_of(self, period):
        return (self.begins + [self.end])[period + 1]

    def period_at(self, time):
        return bisect.bisect_right(self.begins, time) - 1

    def later(self, period, us):
        time = self.begins[period] + Fraction(us)
        return None if time >= self.end else self.period_at(time)

    def bound(self, paid, tolerance):
        if paid <= 0 or self.earned > paid * (1 + tolerance):
            fail(f"links can earn {float(self.earned)}, and bytes have to pay {float(paid)} only")
        return [float(self.end)]


def joint_cuts_bound(s, certificate):
    """Each way between places has to pay for the cuts that it takes a byte through. Backwards, links are turned round."""
    check_keys(certificate, "certificate", TIMED_PRICES | {"cuts"}, TIMED_PRICES | {"cuts"})
    backwards = any("source" in cut for cut in certificate["cuts"])
    key = "source" if backwards else "destination"
    if backwards and any(len({s.links[l].latency for l in links}) > 1 for _, links, _ in s.groups):
        fail("joint cuts of sources prove nothing where links of a group differ in latency")
    prices = TimedPrices(s, certificate)
    cuts, paid = [], Fraction(0)
    for cut in certificate["cuts"]:
        check_keys(cut, "certificate: cuts", {key, "weight", "alpha_us"}, {key, "weight", "alpha_us"})
        gpu, weight = index(cut[key], len(s.node_of_gpu), f"certificate: {key}"), Fraction(number(cut["weight"], "certificate: weight"))
        alpha = [Fraction(number(x, "certificate: alpha_us")) for x in cut["alpha_us"]]
        if len(alpha) != len(s.nodes) or weight < 0:
            fail("a cut has a time for each node, and a weight that is not negative")
        if alpha[s.node_of_gpu[gpu]] < prices.end:
            fail(f"GPU {gpu} is open before {float(prices.end)} us")
        paid += weight * bytes_that_start_open(s, gpu, alpha, backwards)
        cuts.append((weight, alpha))
    sums = any(chunk.reduce for chunk in s.chunks) and not backwards
    copies = [n.gpu is not None or (n.reduce if backwards else n.multicast or (sums and n.reduce)) for n in s.nodes]
    leaving = defaultdict(list)
    for l, link in enumerate(s.links):
        if not link.closed:
            leaving[link.dst if backwards else link.src].append((l, link.src if backwards else link.dst))

    def message(n, l):
        return Fraction(s.links[l].message) if s.nodes[n].gpu is not None or s.nodes[n].stores else Fraction(0)

    def check_ways(u, cost):
        """Labels of a byte on its way: what it has paid, when it is there at the earliest, where, over how many links, between which
        starts on the first link, and the latencies since. Behind many links, and where switches keep it, it may be later."""
        seen, earliest, queue, number = set(), {}, [], itertools.count()

        def take(l, to, period, pays, there, links, first, last, since):
            latency, there = Fraction(s.links[l].latency), max(there, prices.begins[period])
            pays += prices.of[period, l]
            if links <= EXACT_LINKS:
                first, last = max(first, prices.begins[period] - since), min(last, prices.end_of(period) - since)
                if first >= last:
                    return
            since += latency
            there = max(there + latency, first + since)
            if copies[to]:
                changes = []
                for weight, alpha in cuts:
                    opens, closes = max(first, alpha[u] + cost), min(last, alpha[to] - (since if links <= EXACT_LINKS else 0))
                    if links <= EXACT_LINKS and opens < closes:
                        changes += [(opens, weight), (closes, -weight)]
                    elif links > EXACT_LINKS and alpha[u] + cost < last and there < alpha[to]:
                        changes += [(opens, weight)]
                weights = max(itertools.accumulate(change for _, change in sorted(changes)), default=0)
                if weights > Fraction(pays, prices.unit) * (1 + TOLERANCE):
                    fail(f"a way from node {u} to node {to} pays less than the cuts weigh that take it")
                return
            links = EXACT_LINKS + 1 if s.nodes[to].stores else links + 1
            if there < prices.end and pays < most:
                heapq.heappush(queue, (pays, there, next(number), to, links, first, last, since))
        for l, to in leaving[u]:
            if message(u, l) == cost:
                for period in range(prices.count):
                    take(l, to, period, 0, Fraction(0), 0, Fraction(0), prices.end, Fraction(0))
        while queue:
            pays, there, _, n, links, first, last, since = heapq.heappop(queue)
            if links <= EXACT_LINKS:
                if (n, since, first, last) in seen:
                    continue
                seen.add((n, since, first, last))
            else:
                if there >= earliest.get((n, last), math.inf):
                    continue
                earliest[n, last] = there
            for l, to in leaving[n]:
                begin = there + message(n, l)
                for period in range(prices.period_at(begin), prices.count):
                    if links <= EXACT_LINKS and prices.begins[period] >= last + since:
                        break
                    take(l, to, period, pays, begin, links, first, last, since)
    most = sum(weight for weight, _ in cuts) * prices.unit
    for u, is_place in enumerate(copies):
        for cost in {message(u, l) for l, _ in leaving[u]} if is_place else ():
            check_ways(u, cost)
    return prices.bound(paid, -TOLERANCE)
