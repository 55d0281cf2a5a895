"""Whether a schedule's demand is that of its collective, and what its certificate of a lower bound proves.

Nothing here looks at the sends.
"""
import bisect
import heapq
import math
from collections import defaultdict
from fractions import Fraction

from message_prices import message_prices_bound
from schedule_file import Invalid, check_keys, equal, index, number
from timed_cuts import TIMED_PRICES, TOLERANCE, TimedPrices, bytes_that_start_open, counted_contributions, fail, joint_cuts_bound


def close(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def wanted(chunk):
    """The destinations that have to get something."""
    return [g for g in chunk.destinations if chunk.initial.get(g, (0, 0))[1] != chunk.full]


# Demands (FORMATS.md 2).

def parts_of(collective, size, members, counts):
    """The bytes of every part: of each member's, of each pair's, or of the one buffer."""
    number = len(members) ** {"alltoall": 2, "allgather": 1, "scatter": 1, "gather": 1, "reduce_scatter": 1}.get(collective, 0)
    if counts is None:
        return [size / len(members)] * number if number > 1 else [size]
    if number == 1 or len(counts) != number:
        raise Invalid("format", f"there are {len(counts)} counts for {len(members)} members of {collective}")
    rows = [counts[i:i + len(members)] for i in range(0, number, len(members))]
    sums = [math.fsum(row) for row in rows] + ([math.fsum(column) for column in zip(*rows)] if len(rows) > 1 else [])
    if not close(max(sums), size):
        raise Invalid("demand", f"the counts give a size of {max(sums)} bytes; size_bytes is {size}")
    return counts


def flows_of(collective, size, members, counts, root):
    """(sources, destinations, reduced) -> bytes."""
    everyone = tuple(members)

    def others(g):
        return tuple(h for h in everyone if h != g)

    parts = parts_of(collective, size, members, counts)
    if collective == "allgather":
        return {((g,), others(g), False): part for g, part in zip(everyone, parts)}
    if collective == "alltoall":
        pairs = [(g, h) for g in everyone for h in everyone]
        return {((g,), (h,), False): part for (g, h), part in zip(pairs, parts) if g != h}
    if collective == "broadcast":
        return {((root,), others(root), False): size}
    if collective == "scatter":
        return {((root,), (h,), False): part for h, part in zip(everyone, parts) if h != root}
    if collective == "gather":
        return {((h,), (root,), False): part for h, part in zip(everyone, parts) if h != root}
    if collective == "reduce_scatter":
        return {(everyone, (g,), True): part for g, part in zip(everyone, parts)}
    if collective == "reduce":
        return {(everyone, (root,), True): size}
    if collective == "allreduce":
        return {(everyone, everyone, True): size}
    raise Invalid("format", f"collective is '{collective}', which does not exist")


def check_demand(s):
    if not s.chunks:
        raise Invalid("demand", "there are no chunks")
    if s.collective == "custom":
        total = math.fsum(chunk.bytes for chunk in s.chunks)
        if not close(total, s.size):
            raise Invalid("demand", f"the chunks have {total} bytes together; size_bytes is {s.size}")
        return
    found = defaultdict(float)
    for chunk in s.chunks:
        destinations = set(chunk.destinations) - (set() if chunk.reduce else set(chunk.sources))
        found[tuple(sorted(chunk.sources)), tuple(sorted(destinations)), chunk.reduce] += chunk.bytes
    first = s.chunks[0]
    root = first.sources[0] if s.collective in ("broadcast", "scatter") else first.destinations[0]
    expected = flows_of(s.collective, s.size, s.members, s.counts, root)
    for flow in sorted(expected.keys() | found.keys()):
        if not close(expected.get(flow, 0), found.get(flow, 0)):
            sources, destinations, reduced = flow
            raise Invalid("demand", f"{found.get(flow, 0)} bytes go from GPUs {list(sources)} to GPUs {list(destinations)}"
                                    f"{', added up' if reduced else ''}; {s.collective} of {s.size} bytes asks for"
                                    f" {expected.get(flow, 0)}")


# Certificates (FORMATS.md 3).

def distances(s, origins, lengths=None, backwards=False):
    """One a node: the least sum of `lengths` (one a link; absent: latencies) from an origin, or to one."""
    if not hasattr(s, "neighbours"):
        s.neighbours = [[[] for _ in s.nodes], [[] for _ in s.nodes]]
        for l, link in enumerate(s.links):
            if link.closed:
                continue
            s.neighbours[0][link.src].append((l, link.dst))
            s.neighbours[1][link.dst].append((l, link.src))
    lengths = lengths or [link.latency for link in s.links]
    result = [math.inf] * len(s.nodes)
    queue = [(0.0, node) for node in set(origins)]
    for _, node in queue:
        result[node] = 0.0
    while queue:
        distance, node = heapq.heappop(queue)
        if distance > result[node]:
            continue
        for l, other in s.neighbours[backwards][node]:
            if distance + lengths[l] < result[other]:
                result[other] = distance + lengths[l]
                heapq.heappush(queue, (result[other], other))
    return result


def solve(capacities, amount):
    """The T at which the sum over (link, weight, r, s) of weight x the integral of the link's bandwidth from r to T - s is
    `amount` bytes; infinite if it never is."""
    events = []  # (T, change of GB/s)
    for link, weight, first, last in capacities:
        before = 0.0
        steps = link.steps or [(0.0, link.bandwidth)]
        for (time, gbps), (until, _) in zip(steps, steps[1:] + [(math.inf, 0)]):
            if until > first:
                events.append((max(time, first) + last, weight * (gbps - before)))
                before = gbps
    now, rate = 0.0, 0.0
    for time, change in sorted(events) + [(math.inf, 0.0)]:
        if rate > 0 and amount <= 1000 * rate * (time - now):
            return now + amount / (1000 * rate)
        if time > now:
            amount -= 1000 * rate * (time - now) if rate > 0 else 0
            now = time
        rate += change
    return math.inf


def latency_bound(s, certificate):
    check_keys(certificate, "certificate", {"kind", "source", "destination"}, {"source", "destination"})
    source, destination = (index(certificate[key], len(s.node_of_gpu), f"certificate: {key}") for key in ("source", "destination"))
    found = []
    for chunk in s.chunks:
        for bit in range(chunk.full.bit_length()) if destination in wanted(chunk) and source in chunk.sources else ():
            holders = chunk.holders(bit)
            if destination not in holders and source in (holders if not chunk.reduce else [chunk.sources[bit]]):
                found.append(distances(s, [s.node_of_gpu[g] for g in holders])[s.node_of_gpu[destination]])
    if not found:
        fail(f"GPU {source} has nothing that GPU {destination} wants")
    return [max(found)]


def cut_bound(s, certificate):
    """Both readings. Bytes that leave S for destinations outside, or where every chunk is a sum for one GPU, its mirror image:
    bytes that enter S from contributions outside."""
    check_keys(certificate, "certificate", {"kind", "nodes", "bytes"}, {"nodes", "bytes"})
    leave = not all(chunk.reduce and len(chunk.destinations) == 1 and not chunk.held for chunk in s.chunks)
    side = "leave" if leave else "enter"
    inside = [False] * len(s.nodes)
    for n in certificate["nodes"]:
        inside[index(n, len(s.nodes), "certificate: node")] = True
    place = s.node_of_gpu
    amount, single = 0.0, True
    audiences = set()  # per chunk that crosses: for each far end that it needs, the nodes that serve
    for chunk in s.chunks:
        homes = [tuple(place[g] for g in chunk.holders(bit)) for bit in range(chunk.full.bit_length())]
        homes = [h for h in homes if h and all(inside[n] == leave for n in h)]
        ends = [(place[g],) for g in wanted(chunk) if inside[place[g]] != leave]
        single = single and (len(wanted(chunk)) if leave else chunk.full.bit_length()) <= 1
        if homes and ends:
            amount += chunk.bytes
            audiences.add(tuple(sorted(ends if leave else homes)))
    if amount == 0:
        fail(f"no byte has to {side} the cut")
    if not close(amount, number(certificate["bytes"], "certificate: bytes")):
        fail(f"{certificate['bytes']} bytes; the demand gives {amount}")
    if not leave and any(link.steps for link in s.links):
        fail("a cut that bytes enter proves nothing where bandwidths change")
    near = distances(s, [place[g] for g in range(len(place)) if inside[place[g]]], backwards=not leave)
    crossing = [link for link in s.links if not link.closed and inside[link.src] == leave and inside[link.dst] != leave]
    crossing = [link for link in crossing if near[link.src if leave else link.dst] < math.inf]
    time = solve([(link, 1.0, near[link.src if leave else link.dst], 0.0) for link in crossing], amount)
    if single:
        return [time + min((link.latency for link in crossing), default=math.inf)]
    beyond = {}  # far end of a link -> distances
    for link in crossing:
        node = link.dst if leave else link.src
        if node not in beyond:
            beyond[node] = distances(s, [node], backwards=not leave)
    reach = [(link.latency, beyond[link.dst if leave else link.src]) for link in crossing]
    stated = min((latency + min(max(min(to[n] for n in end) for end in audience) for audience in audiences)
                  for latency, to in reach), default=math.inf)
    sound = min(max(min((latency + to[n] for latency, to in reach for n in end), default=math.inf) for end in audience)
                for audience in audiences)
    return [time + sound, time + stated]


def data_of_metric(s):
    """(source, destinations, ready time) -> bytes, and whether it is that of sums, run backwards."""
    sums = all(chunk.reduce and len(chunk.destinations) == 1 and not chunk.held for chunk in s.chunks)
    data = defaultdict(float)
    for c, chunk in enumerate(s.chunks):
        if sums:
            root = chunk.destinations[0]
            data[root, tuple(sorted(set(chunk.sources) - {root})), 0.0] += chunk.bytes
            continue
        if chunk.reduce or len(chunk.sources) != 1:
            fail(f"a metric with periods is for chunks with one source; chunk {c} is another")
        source = chunk.sources[0]
        data[source, tuple(sorted(wanted(chunk))), chunk.ready[source]] += chunk.bytes
    return data, sums


def metric_bound_with_periods(s, certificate):
    """Lengths differ between periods; a datum may wait, and each of its destinations has a share of the lengths."""
    check_keys(certificate, "certificate", {"kind", "length", "from_us", "data", "shares"}, {"length", "from_us"})
    begins = [number(x, "certificate: from_us") for x in certificate["from_us"]]
    if not begins or begins[0] != 0 or any(a >= b for a, b in zip(begins, begins[1:])):
        fail("periods begin at 0 and then at times that ascend")
    lengths = [number(x, "certificate: length") for x in certificate["length"]]
    count, nodes = len(s.links), len(s.nodes)
    if len(lengths) != len(begins) * count or any(x < 0 for x in lengths):
        fail(f"{len(lengths)} lengths for {len(begins)} periods of {count} links")
    if any(link.steps for link in s.links):
        fail("a metric with periods proves nothing where bandwidths change")
    named = [(datum["source"], tuple(datum["destinations"])) for datum in certificate.get("data", [])]
    if len(set(named)) != len(named):
        fail("data of one source for the same destinations stands twice")
    columns = certificate.get("shares", {"datum": [], "destination": [], "place": [], "length": []})
    check_keys(columns, "shares", {"datum", "destination", "place", "length"}, {"datum", "destination", "place", "length"})
    if len({len(column) for column in columns.values()}) > 1:
        fail("columns of shares differ in length")
    own, sums = {}, defaultdict(float)  # (datum, destination) -> place -> share
    for datum, destination, place, share in zip(columns["datum"], columns["destination"], columns["place"], columns["length"]):
        index(datum, len(named), "certificate: datum")
        index(place, len(lengths), "certificate: place")
        shares = own.setdefault((datum, destination), {})
        if place in shares or number(share, "certificate: share") < 0:
            fail(f"share {share} of length {place} stands twice or is negative")
        shares[place] = share
        sums[datum, place] += share
    for (datum, place), total in sums.items():
        if total > lengths[place] * (1 + 1e-12):
            fail(f"shares of length {place} sum to {total}; it is {lengths[place]}")
    data, mirrored = data_of_metric(s)
    ends = [(link.dst, link.src) if mirrored else (link.src, link.dst) for link in s.links]
    leaving = [[l for l, link in enumerate(s.links) if not link.closed and ends[l][0] == n] for n in range(nodes)]

    def distance(source, ready, destination, length):
        first = max(p for p, begin in enumerate(begins) if begin <= ready)
        best, queue = {(first, source): 0.0}, [(0.0, first, source)]
        while queue:
            far, period, node = heapq.heappop(queue)
            if far > best[period, node]:
                continue
            if (period, node) == (len(begins) - 1, destination):
                return far
            steps = [(0.0, period + 1, node)] if period + 1 < len(begins) else []
            steps += [(length(period * count + l), period, ends[l][1]) for l in leaving[node]]
            for cost, p, n in steps:
                if far + cost < best.get((p, n), math.inf):
                    best[p, n] = far + cost
                    heapq.heappush(queue, (far + cost, p, n))
        return math.inf

    place_of, amount = s.node_of_gpu, 0.0
    for (source, destinations, ready), size in data.items():
        if (source, destinations) in named:
            datum = named.index((source, destinations))
            parts = [(d, shares) for (k, d), shares in own.items() if k == datum]
            if any(d not in destinations for d, _ in parts):
                fail("a GPU has a share of what it does not want")
            amount += size * sum(distance(place_of[source], ready, place_of[d], lambda at, shares=shares: shares.get(at, 0.0))
                                 for d, shares in parts)
        else:
            amount += size * max(distance(place_of[source], ready, place_of[d], lambda at: lengths[at]) for d in destinations)
    if not 0 < amount < math.inf:
        fail("the lengths have to keep some data from where it is wanted")
    earliest = [math.inf] * nodes
    for source, ready in {(source, ready) for source, _, ready in data}:
        near = distances(s, [place_of[source]], backwards=mirrored)
        earliest = [min(known, ready + way) for known, way in zip(earliest, near)]
    last = distances(s, {place_of[d] for _, destinations, _ in data for d in destinations}, backwards=not mirrored)
    windows = [(link, l, earliest[ends[l][0]], link.latency + last[ends[l][1]]) for l, link in enumerate(s.links) if not link.closed]

    def carried_by(end):
        return sum(1000 * link.bandwidth * lengths[p * count + l]
                   * max(0.0, min(until, end - before_end) - max(first, begin))
                   for p, (begin, until) in enumerate(zip(begins, begins[1:] + [math.inf]))
                   for link, l, first, before_end in windows if lengths[p * count + l] > 0 and first + before_end < math.inf)
    early, late = 0.0, 1.0
    while carried_by(late) < amount:
        late *= 2
        if late > 1e30:
            fail("links of these lengths never carry the demand")
    while early < (early + late) / 2 < late and late - early > 1e-12 * late:
        middle = (early + late) / 2
        early, late = (middle, late) if carried_by(middle) < amount else (early, middle)
    return [early]


def metric_bound(s, certificate):
    if "from_us" in certificate:
        return metric_bound_with_periods(s, certificate)
    check_keys(certificate, "certificate", {"kind", "length"}, {"length"})
    lengths = [number(x, "certificate: length") for x in certificate["length"]]
    if len(lengths) != len(s.links):
        fail(f"{len(lengths)} lengths for {len(s.links)} links")
    amount, from_node = 0.0, {}
    for c, chunk in enumerate(s.chunks):
        if len(wanted(chunk)) != 1 or chunk.full != 1:
            fail(f"a metric is for chunks with one destination that are not reduced; chunk {c} is another")
        ways = []
        for n in (s.node_of_gpu[g] for g in chunk.holders(0)):
            if n not in from_node:
                from_node[n] = distances(s, [n], lengths)
            ways.append(from_node[n][s.node_of_gpu[wanted(chunk)[0]]])
        amount += chunk.bytes * min(ways)
    if amount == 0:
        fail("the lengths have to keep some pair apart")
    first, last = distances(s, s.node_of_gpu), distances(s, s.node_of_gpu, backwards=True)
    return [solve([(link, length, first[link.src], link.latency + last[link.dst]) for link, length in zip(s.links, lengths)
                   if not link.closed and length > 0 and first[link.src] + last[link.dst] < math.inf], amount)]


def partition_bound(s, certificate):
    """Gossip among k parts takes 2k - 2 calls (Harary and Schwenk 1974): so often do bytes that all parts add to and want
    enter a part, or leave one."""
    check_keys(certificate, "certificate", {"kind", "part", "side"}, {"part", "side"})
    part, side = certificate["part"], certificate["side"]
    if side not in ("enter", "leave"):
        fail(f"side is '{side}'; it has to be enter or leave")
    if len(part) != len(s.nodes):
        fail(f"{len(part)} parts for {len(s.nodes)} nodes")
    count = max(part) + 1
    for n, p in enumerate(part):
        index(p + 1, count + 1, f"certificate: part of node {n}, plus 1,")
        if p < 0 and s.nodes[n].gpu in s.members:
            fail(f"{s.nodes[n].name} is in no part; only switches may be outside")
        if p < 0 and s.nodes[n].gpu is None and (s.nodes[n].reduce if side == "enter" else s.nodes[n].multicast):
            fail(f"{s.nodes[n].name} is outside and may {'add' if side == 'enter' else 'copy'}")
    if count < 2:
        fail("it takes two parts at least")
    place = s.node_of_gpu
    amount = 0.0
    for chunk in s.chunks:
        homes = [{part[place[g]] for g in chunk.holders(bit)} for bit in range(chunk.full.bit_length())]
        gives = set().union(*(h for h in homes if len(h) == 1))
        wants = {part[place[g]] for g in chunk.destinations}
        if chunk.reduce and len(gives) == count and len(wants) == count:
            amount += chunk.bytes
    if amount == 0:
        fail("no bytes are added up from all parts and wanted by all")
    links = [link for link in s.links if not link.closed and part[link.src] != part[link.dst] and part[link.dst if side == "enter" else link.src] >= 0]
    if not links:
        fail(f"no link {side}s a part")
    time = solve([(link, 1.0, 0.0, 0.0) for link in links], 2 * (count - 1) * amount)
    return [time + min(link.latency for link in links)]


def carried(windows, most=math.inf):
    """The integral of the least of `most` and the bandwidth of the links in their windows (link, from, until, when a byte counts once,
    twice, ...), in GB/s x us; a link counts as often as its bytes, and `most` as often as the most of these then."""
    changes, times = [], [0] * len(windows)
    for w, (link, first, last, counts) in enumerate(windows):
        steps = link.steps or [(0, link.bandwidth)]
        for (time, gbps), (until, _) in zip(steps, steps[1:] + [(last, 0)]):
            for counted in counts:
                begin, end = max(first, counted, Fraction(time)), min(last, Fraction(until))
                if begin < end:
                    changes += [(begin, Fraction(gbps), w, 1), (end, -Fraction(gbps), w, -1)]
    changes.sort()
    amount, rate = Fraction(0), Fraction(0)
    for (time, change, w, more), (until, *_) in zip(changes, changes[1:]):
        rate += change
        times[w] += more
        amount += min(rate, most * max(1, *times)) * (until - time)
    return amount


def time_cut_bound(s, certificate):
    """In fractions. Of a source: the same with links, sources and destinations turned round, and time from the end on."""
    backwards = "source" in certificate
    key = "source" if backwards else "destination"
    check_keys(certificate, "certificate", {"kind", key, "alpha_us"} | (set() if backwards else {"sources"}), {key, "alpha_us"})
    gpu = index(certificate[key], len(s.node_of_gpu), f"certificate: {key}")
    alpha = [Fraction(number(x, "certificate: alpha_us")) for x in certificate["alpha_us"]]
    if len(alpha) != len(s.nodes):
        fail(f"{len(alpha)} times for {len(s.nodes)} nodes")
    counts = None  # a byte counts once
    if "sources" in certificate:
        amount, counts = counted_contributions(s, gpu, alpha, ascending(certificate["sources"], len(s.node_of_gpu), "sources"))
    else:
        amount = bytes_that_start_open(s, gpu, alpha, backwards)
    if amount == 0 or alpha[s.node_of_gpu[gpu]] == 0:
        fail(f"nothing that GPU {gpu} {'has for others' if backwards else 'wants'} starts at open nodes alone, or it is open from 0 us on")
    windows = {}
    for l, link in enumerate(s.links):
        if link.closed:
            continue
        near, far = (link.dst, link.src) if backwards else (link.src, link.dst)
        begins = s.nodes[near].gpu is not None or s.nodes[near].stores
        cost = Fraction(link.message) if begins else Fraction(0)
        windows[l] = (link, alpha[near] + cost, alpha[far] - Fraction(link.latency),
                      [Fraction(0)] if counts is None else [us + cost for us in counts[near]])
    groups = [([l for l in links if l in windows], Fraction(gbps)) for _, links, gbps in s.groups
              if not backwards or len({s.links[l].latency for l in links}) == 1]
    # The one that holds back most comes first.
    groups.sort(key=lambda group: (carried([windows[l] for l in group[0]], group[1]) - sum(carried([windows[l]]) for l in group[0]), *group))
    capacity = Fraction(0)
    for links, gbps in groups:
        capacity += carried([windows.pop(l) for l in links if l in windows], gbps)
    capacity += sum(carried([window]) for window in windows.values())
    tolerance = Fraction(1, 10 ** 12) * (-1 if any(link.steps and not link.closed for link in s.links) else 1)
    if capacity * 1000 > amount * (1 + tolerance):
        fail(f"links take {float(capacity) * 1000} bytes from open to closed, and {float(amount)} have to pass")
    return [float(alpha[s.node_of_gpu[gpu]])]


def prices_bound(s, certificate):
    """In exact fractions: what bytes pay at least to be there in time, against what links can earn by then."""
    check_keys(certificate, "certificate", TIMED_PRICES, TIMED_PRICES)
    if any(len(chunk.sources) != 1 or len(chunk.destinations) != 1 for chunk in s.chunks):
        fail("prices over time are for data with one source and one destination each")
    prices = TimedPrices(s, certificate)
    leaving = defaultdict(list)  # behind a message cost, which is the second part of a place
    waits = defaultdict(set)
    for l, link in enumerate(s.links):
        if not link.closed:
            begin = s.nodes[link.src].gpu is not None or s.nodes[link.src].stores
            leaving[link.src, link.message if begin else 0].append(l)
            waits[link.src].add(link.message if begin else 0)

    def least_payments(source, first):
        best, queue = {(first, (source, 0)): 0}, [(0, first, (source, 0))]
        while queue:
            paid, period, place = heapq.heappop(queue)
            if paid > best[period, place]:
                continue
            steps = [(0, period + 1 if period + 1 < prices.count else None, place)]
            if place[1] == 0:
                steps += [(0, prices.later(period, message), (place[0], message)) for message in waits[place[0]] if message > 0]
            steps += [(prices.of[period, l], prices.later(period, s.links[l].latency), (s.links[l].dst, 0)) for l in leaving[place]]
            for cost, then, to in steps:
                if then is not None and paid + cost < best.get((then, to), math.inf):
                    best[then, to] = paid + cost
                    heapq.heappush(queue, (paid + cost, then, to))
        return {place[0]: paid for (period, place), paid in best.items() if period == prices.count - 1 and place[1] == 0}
    known, paid = {}, Fraction(0)
    for chunk in s.chunks:
        source, destination = chunk.sources[0], s.node_of_gpu[chunk.destinations[0]]
        start = (s.node_of_gpu[source], prices.period_at(Fraction(chunk.ready[source])))
        if start not in known:
            known[start] = least_payments(start[0], start[1])
        if destination not in known[start]:
            return [float(prices.end)]  # nothing gets there in time
        paid += Fraction(chunk.bytes) * Fraction(known[start][destination], prices.unit)
    return prices.bound(paid, TOLERANCE)


def ascending(values, end, what):
    values = [index(x, end, f"certificate: {what}") for x in values]
    if not values or any(a >= b for a, b in zip(values, values[1:])):
        fail(f"{what} have to ascend")
    return values


def crossing(starts, amounts, bytes_per_us, cost, apart, total):
    """The bytes that cross a link by messages that start before the last of `starts`, `apart` after one another, where those that
    start before start i have `amounts[i]` at most. Whole numbers, rounded outwards: of time exact, of bytes parts of the total."""
    unit, grain, fine = max(us.denominator for us in starts + [cost, apart]), Fraction(2 ** 80) / total, 128
    starts, cost, apart, rate = [int(us * unit) for us in starts], int(cost * unit), int(apart * unit), bytes_per_us * grain / unit
    amounts = [math.ceil(amount * grain) for amount in amounts]
    for i in reversed(range(len(amounts) - 1)):
        amounts[i] = min(amounts[i], amounts[i + 1])
    end, last = starts[-1], len(starts) - 1
    needed = [0]  # per start, of what can start before it: the sum of bytes / time to the end
    for i in range(last):
        needed.append(needed[i] + ((amounts[i + 1] - amounts[i] << fine) // (end - starts[i])))
    least = amounts[-1]

    def behind(s, first, far, apart):
        """At most `least` bytes from start s on, the first message from start `first` on; `far` is a cost behind s."""
        room, begin = math.ceil(rate * (end - starts[s])), starts[s]
        second = starts[first] + apart

        def weighed(number, us):
            return number + number * min(cost, us - begin) // (end - us)

        def taken(k):
            if k <= first + 1:
                return weighed(amounts[k] - amounts[s], starts[first])
            third = min(k, max(first + 1, bisect.bisect_left(starts, second)))
            near = min(max(far, third), k)
            return (weighed(amounts[first + 1] - amounts[s], starts[first])
                    + (weighed(amounts[third] - amounts[first + 1], second) if amounts[third] > amounts[first + 1] else 0)
                    + ((end - begin) * (needed[near] - needed[third]) >> fine) + amounts[k] - amounts[near]
                    + (cost * (needed[k] - needed[near]) >> fine))
        k, high = s, (bisect.bisect_left(amounts, least) if second < end else min(first + 1, bisect.bisect_left(amounts, least)))
        if taken(high) <= room:
            return min(least, amounts[high])
        while high - k > 1:
            middle = (k + high) // 2
            k, high = (k, middle) if taken(middle) > room else (middle, high)
        us = starts[first] if k <= first else max(starts[k], second)
        return min(least, amounts[k + 1], amounts[k] - -(room - taken(k)) * (end - us) // (end - us + min(cost, us - begin)))
    for s in reversed(range(last)):
        if amounts[s] < least:
            least = behind(s, s, bisect.bisect_left(starts, starts[s] + cost, s, last), 0)
    witness = 0
    for s in range(last if apart > 0 and cost > 0 else 0):
        if amounts[s] < least:
            far = bisect.bisect_left(starts, starts[s] + cost, s, last)
            if witness >= s and behind(s, witness, far, apart) >= least:
                continue
            most = amounts[s]
            for first in range(s, bisect.bisect_left(amounts, least)):
                some = behind(s, first, far, apart)
                most, witness = (some, first) if some > most else (most, witness)
                if most >= least:
                    break
            least = most
    return least / grain


def knowledge_bound(s, certificate):
    """In fractions. Of a source: the same with links, sources and destinations turned round, switches that copy for
    those that add, and time from the end on."""
    backwards = "source" in certificate
    key, others = ("source", "destinations") if backwards else ("destination", "sources")
    check_keys(certificate, "certificate", {"kind", key, others, "sets", "times_us"}, {key, others, "sets", "times_us"})
    gpu = index(certificate[key], len(s.node_of_gpu), f"certificate: {key}")
    named = ascending(certificate[others], len(s.node_of_gpu), others)
    sets = [frozenset(ascending(nodes, len(s.nodes), "sets")) for nodes in certificate["sets"]]
    times = [Fraction(number(x, "certificate: times_us")) for x in certificate["times_us"]]
    if not 2 <= len(times) <= 4096 or len(sets) > 64 or times[0] != 0 or any(a >= b for a, b in zip(times, times[1:])):
        fail("there have to be 2 to 4096 times, ascending from 0, and at most 64 sets")
    sums = all(chunk.reduce and len(chunk.destinations) == 1 and not chunk.held for chunk in s.chunks)
    pairs = all(len(chunk.destinations) == 1 and len(chunk.sources) == 1 for chunk in s.chunks)
    if backwards and (not (sums or pairs) or any(link.steps for link in s.links)):
        fail("knowledge of a source is for data or sums with one destination each, without steps")
    counted = []  # bytes, {node: from when it has them}
    for chunk in s.chunks:
        if backwards:
            if gpu in chunk.sources and chunk.destinations[0] != gpu and chunk.destinations[0] in named:
                counted.append((Fraction(chunk.bytes), {s.node_of_gpu[chunk.destinations[0]]: Fraction(0)}))
            continue
        if gpu not in chunk.destinations:
            continue
        bits = ([i for i, g in enumerate(chunk.sources) if g in named and chunk.holders(i)] if chunk.reduce
                else [0] if chunk.sources[0] in named else [])
        for bit in bits:
            counted.append((Fraction(chunk.bytes) / len(bits), {
                s.node_of_gpu[g]: Fraction(0 if g in chunk.told else chunk.ready[g]) for g in chunk.holders(bit)}))
    total = sum(amount for amount, _ in counted)
    if total == 0:
        fail(f"GPU {gpu} wants nothing of the GPUs named")
    # Ways: per node the latency from each origin over cut-through switches, the least message cost, whether some switch adds.
    links = [((link.dst, link.src) if backwards else (link.src, link.dst)) + (link,) for link in s.links if not link.closed]
    passed = [node.gpu is None and not node.stores for node in s.nodes]
    ways = [{} if passed[n] else {n: Fraction(0)} for n in range(len(s.nodes))]
    costs = [math.inf if passed[n] else Fraction(0) for n in range(len(s.nodes))]
    adds = [passed[n] and (node.multicast if backwards else node.reduce) for n, node in enumerate(s.nodes)]
    for _ in s.nodes:
        for a, b, link in links:
            if passed[b]:
                for origin, us in ways[a].items():
                    ways[b][origin] = min(ways[b].get(origin, math.inf), us + Fraction(link.latency))
                costs[b] = min(costs[b], max(costs[a], Fraction(link.message)))
                adds[b] = adds[b] or adds[a]
    links = [(a, b, link, max(costs[a], Fraction(link.message))) for a, b, link in links if ways[a]]
    weighs = not any(link.steps for _, _, link, _ in links)
    places = sets + [frozenset([n]) for n in range(len(s.nodes)) if not passed[n]]
    most = {place: [] for place in places}

    def known(place, before, now):
        period = bisect.bisect_left(times, before) - 1
        return 0 if period < 0 else most[place][period] if period < now else total

    def one(a, before, now):
        amounts = [known(frozenset([origin]), before - us, now) for origin, us in ways[a].items()]
        return min(total, sum(amounts) if adds[a] else max(amounts))

    def started(a, link, before, last, now):
        least = one(a, before, now)
        if len(ways[a]) == 1 or least == 0:
            return least
        some, least = Fraction(0), total
        for place in sets:
            if set(ways[a]) <= place:
                least = min(least, known(place, before, now))
        i = 0
        while link.message > 0 and some < least:
            start = min(before, last - i * Fraction(link.message)) if backwards else before - i * Fraction(link.message)
            if start <= 0:
                return some
            some, i = some + one(a, start, now), i + 1
        return least

    for p in range(len(times) - 1):
        carried, alike = [], {}
        for a, b, link, cost in links:
            like = (a, link.latency, link.message, link.peak)
            last = times[p + 1] - Fraction(link.latency) - cost
            if like not in alike:
                starts = [start for start in times[:p + 1] if start < last] + [last]
                alike[like] = 0 if last <= 0 else crossing(starts, [started(a, link, start, last, p) for start in starts],
                                                           1000 * Fraction(link.peak), cost if weighs else Fraction(0),
                                                           Fraction(0 if backwards else link.message), total)
            carried.append(alike[like])
        for place in sorted(most, key=len, reverse=True):
            first = sum(amount for amount, at in counted if any(n in place and us < times[p + 1] for n, us in at.items()))
            entering = [i for i, (a, b, _, _) in enumerate(links) if b in place and a not in place]
            entered = sum(carried[i] for i in entering)
            for other in sets:
                if entering and all(set(ways[links[i][0]]) <= other for i in entering):
                    delay = min(Fraction(links[i][2].latency) + links[i][3] for i in entering)
                    entered = min(entered, known(other, times[p + 1] - delay, p))
            most[place].append(min([total, first + entered] + [most[other][p] for other in sets if place < other]))
        if most[frozenset([s.node_of_gpu[gpu]])][p] >= total * (1 - Fraction(1, 10 ** 9)):
            fail(f"GPU {gpu} may have all that counts soon after {float(times[p])} us")
    return [float(times[-1])]


def check_bound(s, finish):
    if s.bound is None:
        return
    check_keys(s.bound, "lower_bound", {"us", "certificate"}, {"us", "certificate"})
    claimed = number(s.bound["us"], "lower_bound: us")
    kinds = {"latency": latency_bound, "cut": cut_bound, "metric": metric_bound, "partition": partition_bound,
             "time_cut": time_cut_bound, "prices": prices_bound, "knowledge": knowledge_bound,
             "joint_cuts": joint_cuts_bound, "message_prices": message_prices_bound}
    try:
        kind = s.bound["certificate"]["kind"]
        if kind not in kinds:
            fail(f"kind is '{kind}'; it has to be one of {', '.join(kinds)}")
        proven = kinds[kind](s, s.bound["certificate"])
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid("certificate", f"{type(error).__name__}: {error}") from error
    if not any(equal(claimed, bound) for bound in proven):
        fail(f"the lower bound is {claimed} us, but its {kind} certificate gives {proven[0]} us")
    if claimed > finish and not equal(claimed, finish):
        fail(f"the lower bound is {claimed} us, but the schedule ends at {finish} us")
