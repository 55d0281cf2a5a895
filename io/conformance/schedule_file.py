"""Reads a `rondo-schedule` file (JSON, version 1 or 2; io/FORMATS.md) and checks its form.

Units as in the file: us, bytes, GB/s (1 GB/s = 1000 bytes a us).
"""
import json
import math


class Invalid(Exception):
    """The schedule is invalid: the rule (a number of FORMATS.md 3, or format, demand, finish, certificate) and a sentence."""

    def __init__(self, rule, sentence):
        super().__init__(f"{'rule ' if rule.isdigit() else ''}{rule}: {sentence}")
        self.rule = rule


def refuse(sentence):
    raise Invalid("format", sentence)


def tolerance(time_us):
    return 1e-6 + 1e-9 * abs(time_us)


def equal(a_us, b_us):
    return abs(a_us - b_us) <= tolerance(max(abs(a_us), abs(b_us)))


class Node:
    def __init__(self, name, gpu, data):
        self.name = name  # for sentences: "GPU 3", "switch 16"
        self.gpu = gpu  # its number among the GPUs; None: a switch
        forwarding = data.get("forwarding", "cut_through")
        if gpu is None and forwarding not in ("cut_through", "store_and_forward"):
            refuse(f"{name}: forwarding is '{forwarding}'; it has to be cut_through or store_and_forward")
        self.cut_through = gpu is None and forwarding == "cut_through"
        self.stores = gpu is None and not self.cut_through
        self.multicast = data.get("multicast", True)
        self.reduce = data.get("reduce", False)
        if not isinstance(self.multicast, bool) or not isinstance(self.reduce, bool):
            refuse(f"{name}: multicast and reduce have to be true or false")
        # Of a GPU: of what it only passes on.
        self.buffer_bytes = number(data["buffer_bytes"], f"{name}: buffer_bytes") if "buffer_bytes" in data else (
            0 if gpu is None else math.inf)


class Link:
    def __init__(self, name, data, num_nodes):
        self.name = name
        self.src = index(data["src"], num_nodes, f"{name}: src")
        self.dst = index(data["dst"], num_nodes, f"{name}: dst")
        if self.src == self.dst:
            refuse(f"{name}: src and dst are both node {self.src}")
        self.bandwidth = positive(data["bandwidth_GBps"], f"{name}: bandwidth_GBps")
        self.latency = number(data.get("latency_us", 0), f"{name}: latency_us")
        self.message = number(data.get("message_us", 0), f"{name}: message_us")
        self.steps = None  # [(from_us, GBps)], ascending from 0; None: always `bandwidth`
        if "bandwidth_steps" in data:
            place = f"{name}: bandwidth_steps"
            for step in data["bandwidth_steps"]:
                check_keys(step, place, {"from_us", "GBps"}, {"from_us", "GBps"})
            self.steps = [(number(s["from_us"], place), number(s["GBps"], place)) for s in data["bandwidth_steps"]]
            times = [t for t, _ in self.steps]
            if not times or times[0] != 0 or any(a >= b for a, b in zip(times, times[1:])):
                refuse(f"{place}: from_us has to ascend from 0")
            if self.steps[0][1] != self.bandwidth:
                refuse(f"{place}: the first is {self.steps[0][1]} GB/s, bandwidth_GBps is {self.bandwidth}")
        self.peak = max(b for _, b in self.steps) if self.steps else self.bandwidth


class Chunk:
    """`full` is the set of all its contributions, as bits: bit i stands for sources[i]. A chunk that is not reduced is one
    datum, bit 0, and all its sources hold it. `initial`: GPU -> (from us, set)."""

    def __init__(self, size, sources, destinations, reduce, ready):
        self.bytes = size
        self.sources = sources
        self.destinations = destinations
        self.reduce = reduce
        self.held = False
        self.told = set()  # the GPUs of `held`
        self.ready = dict(zip(sources, ready))
        self.full = (1 << len(sources)) - 1 if reduce else 1
        self.initial = {s: (self.ready[s], 1 << i if reduce else 1) for i, s in enumerate(sources)}

    def hold(self, gpu, sources):
        """`held`: another initial set than its own."""
        self.held = True
        self.told.add(gpu)
        contributions = sum(1 << self.sources.index(s) for s in sources)
        contributions = contributions if self.reduce else min(contributions, 1)
        self.initial[gpu] = (max((self.ready[s] for s in sources), default=0.0), contributions)

    def holders(self, bit):
        return [g for g, (_, contributions) in self.initial.items() if contributions >> bit & 1]


class Schedule:
    """Columns of sends are lists of equal length; `transfer` -1 and `rate` NaN where absent."""


def number(value, place):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        refuse(f"{place} is {value}; it has to be a finite number, not negative")
    return value


def positive(value, place):
    if number(value, place) == 0:
        refuse(f"{place} is 0; it has to be positive")
    return value


def index(value, count, place):
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        refuse(f"{place} is {value}, which does not exist; there are 0 to {count - 1}")
    return value


def check_keys(data, place, known, required=frozenset()):
    if not isinstance(data, dict):
        refuse(f"{place} has to be an object")
    for key in data:
        if key not in known:
            refuse(f"{place}: unknown key '{key}'")
    for key in required:
        if key not in data:
            refuse(f"{place}: key '{key}' is missing")


def check_format(data, name):
    if not isinstance(data, dict) or data.get("format") != name:
        refuse(f"format has to be '{name}'")
    if data.get("version") not in (1, 2):
        refuse(f"version is {data.get('version')} of {name}; this reader knows 1 and 2")
    return data["version"]


NODE_KEYS = {"id", "kind", "chassis", "name", "multicast", "forwarding", "buffer_bytes"}
LINK_KEYS = {"id", "src", "dst", "bandwidth_GBps", "latency_us", "bandwidth_steps"}
SEND_KEYS = {"chunk", "link", "start_us", "end_us", "arrival_us", "op"}


def read_topology(schedule, data):
    version = check_format(data, "rondo-topology")
    check_keys(data, "topology", {"format", "version", "name", "source", "nodes", "links", "shared_bandwidth"},
               {"nodes", "links"})
    schedule.nodes, schedule.links, schedule.node_of_gpu = [], [], []
    for i, node in enumerate(data["nodes"]):
        check_keys(node, f"node {i}", NODE_KEYS | ({"reduce"} if version == 2 else set()), {"id", "kind"})
        if node["id"] != i or node["kind"] not in ("gpu", "switch"):
            refuse(f"node {i}: id is {node['id']} and kind '{node['kind']}'; ids count from 0, kinds are gpu and switch")
        if node["kind"] == "gpu":
            keys = {"buffer_bytes": node["buffer_bytes"]} if "buffer_bytes" in node else {}
            schedule.nodes.append(Node(f"GPU {len(schedule.node_of_gpu)}", len(schedule.node_of_gpu), keys))
            schedule.node_of_gpu.append(i)
        else:
            schedule.nodes.append(Node(f"switch {i}", None, node))
    for i, link in enumerate(data["links"]):
        check_keys(link, f"link {i}", LINK_KEYS | ({"message_us"} if version == 2 else set()),
                   {"id", "src", "dst", "bandwidth_GBps"})
        if link["id"] != i:
            refuse(f"link {i}: id is {link['id']}; ids count from 0")
        schedule.links.append(Link(f"link {i}", link, len(schedule.nodes)))
    schedule.groups = []  # (name, links, GB/s)
    for group in data.get("shared_bandwidth", []):
        check_keys(group, "shared_bandwidth", {"name", "links", "bandwidth_GBps"}, {"links", "bandwidth_GBps"})
        place = f"shared bandwidth '{group.get('name', '')}'"
        links = [index(l, len(schedule.links), place) for l in group["links"]]
        if not links or len(set(links)) != len(links):
            refuse(f"{place} has to name links, each once")
        schedule.groups.append((group.get("name", ""), links, positive(group["bandwidth_GBps"], place)))


def gpu_list(schedule, value, place):
    gpus = [index(g, len(schedule.node_of_gpu), place) for g in value]
    if len(set(gpus)) != len(gpus):
        refuse(f"{place} names a GPU twice")
    return gpus


def read_chunks(schedule, data, sizes, version):
    check_keys(data, "chunks", {"origin", "destinations", "ready_us"} |
               ({"sources", "reduce", "held", "sources_ready_us", "tenant", "priority"} if version == 2 else set()), {"origin", "destinations"})
    count = len(data["origin"])
    column = {name: data.get(name) for name in ("destinations", "sources", "reduce", "ready_us", "sources_ready_us", "tenant", "priority")}
    priorities = {}
    column["chunk_bytes"] = sizes if isinstance(sizes, list) else None
    for name, values in column.items():
        if values is not None and len(values) != count:
            refuse(f"{name} has {len(values)} values for {count} chunks")
    schedule.chunks = []
    for c in range(count):
        place = f"chunk {c}"
        size = positive(sizes[c] if isinstance(sizes, list) else sizes, f"{place}: chunk_bytes")
        origin = index(data["origin"][c], len(schedule.node_of_gpu), f"{place}: origin")
        sources = gpu_list(schedule, column["sources"][c], f"{place}: sources") if column["sources"] else [origin]
        if not sources or sources[0] != origin:
            refuse(f"{place}: origin is GPU {origin}, but its first source is {sources[:1]}")
        destinations = gpu_list(schedule, column["destinations"][c], f"{place}: destinations")
        if not destinations:
            refuse(f"{place}: nobody wants it")
        reduce = column["reduce"][c] if column["reduce"] else 0
        if reduce not in (0, 1):
            refuse(f"{place}: reduce is {reduce}; it has to be 0 or 1")
        ready = [number(column["ready_us"][c], f"{place}: ready_us") if column["ready_us"] else 0.0] * len(sources)
        if column["sources_ready_us"]:
            ready = [number(t, f"{place}: sources_ready_us") for t in column["sources_ready_us"][c]]
            if len(ready) != len(sources):
                refuse(f"{place}: {len(ready)} ready times for {len(sources)} sources")
        tenant = index(column["tenant"][c], 1 << 31, f"{place}: tenant") if column["tenant"] else 0
        priority = positive(column["priority"][c], f"{place}: priority") if column["priority"] else 1
        if priorities.setdefault(tenant, priority) != priority:
            refuse(f"{place}: tenant {tenant} has priority {priorities[tenant]}, not {priority}")
        schedule.chunks.append(Chunk(size, sources, destinations, bool(reduce), ready))
    for held in data.get("held", []):
        check_keys(held, "held", {"chunk", "gpu", "sources"}, {"chunk", "gpu", "sources"})
        chunk = schedule.chunks[index(held["chunk"], count, "held: chunk")]
        sources = gpu_list(schedule, held["sources"], "held: sources")
        if not set(sources) <= set(chunk.sources):
            refuse(f"held: chunk {held['chunk']} has sources {chunk.sources}, not {sources}")
        chunk.hold(index(held["gpu"], len(schedule.node_of_gpu), "held: gpu"), sources)


def read_shape(schedule, data):
    """Who takes part. `closed` links lead from or to a GPU that may neither send nor receive."""
    gpus = len(schedule.node_of_gpu)
    schedule.members = gpu_list(schedule, data.get("group", list(range(gpus))), "group")
    if len(schedule.members) < 2 or schedule.members != sorted(schedule.members):
        refuse(f"group is {schedule.members}; it has to name two GPUs or more, in ascending order")
    schedule.counts = [number(bytes, "counts") for bytes in data["counts"]] if "counts" in data else None
    if data.get("relay", "none") != "none":
        refuse(f"relay is '{data['relay']}'; it has to be none")
    if "relay" in data and len(schedule.members) == gpus:
        refuse("relay is none, but every GPU takes part")
    others = set(range(gpus)) - set(schedule.members)
    shut = {schedule.node_of_gpu[g] for g in others} if "relay" in data else set()
    for link in schedule.links:
        link.closed = link.src in shut or link.dst in shut
    for c, chunk in enumerate(schedule.chunks):
        if others & (set(chunk.sources) | set(chunk.destinations) | set(chunk.initial)):
            refuse(f"chunk {c} has a source or destination outside the group")


def read_sends(schedule, data, version):
    check_keys(data, "sends", SEND_KEYS | ({"transfer", "rate_GBps"} if version == 2 else set()), SEND_KEYS)
    for name in SEND_KEYS | (data.keys() & {"transfer", "rate_GBps"}):
        if len(data[name]) != len(data["chunk"]):
            refuse(f"sends.{name} has {len(data[name])} values for {len(data['chunk'])} sends")
    for name, count in (("chunk", len(schedule.chunks)), ("link", len(schedule.links)), ("op", 2)):
        for i, value in enumerate(data[name]):
            index(value, count, f"sends[{i}]: {name}")
    for name in ("start_us", "end_us", "arrival_us"):
        for i, value in enumerate(data[name]):
            number(value, f"sends[{i}]: {name}")
    schedule.chunk, schedule.link, schedule.op = data["chunk"], data["link"], data["op"]
    schedule.start, schedule.end, schedule.arrival = data["start_us"], data["end_us"], data["arrival_us"]
    keys = list(zip(schedule.start, schedule.link, schedule.chunk))
    for i in range(1, len(keys)):
        if keys[i - 1] > keys[i]:
            refuse(f"sends[{i}] stands after sends[{i - 1}], but sends are sorted by (start_us, link, chunk)")
    schedule.transfer = data.get("transfer", [-1] * len(keys))
    for i, value in enumerate(schedule.transfer):
        index(value + 1 if isinstance(value, int) else value, 1 << 62, f"sends[{i}]: transfer (or -1)")
    schedule.rate = [math.nan if r is None else r for r in data.get("rate_GBps", [None] * len(keys))]
    for i, value in enumerate(schedule.rate):
        if value == value:
            positive(value, f"sends[{i}]: rate_GBps")


def read_schedule(path):
    """Throws Invalid where the file is not of the form that FORMATS.md gives."""
    with open(path, encoding="utf-8") as file:
        try:
            data = json.load(file)
        except ValueError as error:
            raise Invalid("format", f"{type(error).__name__}: {error}") from error
    return schedule_of(data)


def schedule_of(data):
    """The same, of the JSON value."""
    schedule = Schedule()
    try:
        version = check_format(data, "rondo-schedule")
        required = {"topology", "collective", "size_bytes", "chunk_bytes", "chunks", "sends", "finish_us"}
        check_keys(data, "schedule", required | {"format", "version", "producer", "algorithm_bandwidth_GBps", "lower_bound",
                                                 "gap"} | ({"group", "counts", "relay"} if version == 2 else set()), required)
        read_topology(schedule, data["topology"])
        read_chunks(schedule, data["chunks"], data["chunk_bytes"], version)
        read_shape(schedule, data)
        read_sends(schedule, data["sends"], version)
        schedule.collective = data["collective"]
        schedule.size = positive(data["size_bytes"], "size_bytes")
        schedule.finish = number(data["finish_us"], "finish_us")
        schedule.bound = data.get("lower_bound")
        bandwidth = data.get("algorithm_bandwidth_GBps")
        # Figures for people; the example of FORMATS.md gives them to five digits.
        derived = schedule.size / max(schedule.finish, 1e-300) / 1000
        if bandwidth is not None and not abs(bandwidth - derived) <= 1e-4 * derived:
            refuse(f"algorithm_bandwidth_GBps is {bandwidth}; size_bytes / finish_us gives {derived}")
        if data.get("gap") is not None:
            derived = schedule.finish / positive(schedule.bound["us"], "lower_bound.us") - 1
            if not abs(data["gap"] - derived) <= 1e-5:
                refuse(f"gap is {data['gap']}; finish_us / lower_bound.us - 1 gives {derived}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Invalid("format", f"{type(error).__name__}: {error}") from error
    return schedule
