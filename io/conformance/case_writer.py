"""What make_cases.py builds a case with. At 1 GB/s, US bytes take 1 us."""
import json
import pathlib
import shutil

HERE = pathlib.Path(__file__).resolve().parent
US = 1000.0
ABSENT = object()  # as a value: without this key


class Fabric:
    """`gpus` GPUs, nodes 0, 1, 2, ...; then switches."""

    def __init__(self, gpus):
        self.nodes = [{"id": i, "kind": "gpu"} for i in range(gpus)]
        self.links, self.shared = [], []

    def switch(self, **keys):
        self.nodes.append({"id": len(self.nodes), "kind": "switch", **keys})
        return len(self.nodes) - 1

    def link(self, src, dst, gbps=1.0, latency=0.0, **keys):
        self.links.append({"id": len(self.links), "src": src, "dst": dst, "bandwidth_GBps": gbps, "latency_us": latency, **keys})
        return len(self.links) - 1

    def share(self, gbps, *links):
        self.shared.append({"name": "nic", "links": list(links), "bandwidth_GBps": gbps})


def line(gpus, latency=0.5, backwards=False):
    """0 -> 1 -> 2 ... (or the other way round) at 1 GB/s; link i leaves GPU i (or enters it)."""
    fabric = Fabric(gpus)
    for i in range(gpus - 1):
        fabric.link(*((i + 1, i) if backwards else (i, i + 1)), 1.0, latency)
    return fabric


def full(gpus, latency=0.5):
    """Link i * (gpus - 1) + k leads from GPU i to the k-th of the others."""
    fabric = Fabric(gpus)
    for i in range(gpus):
        for j in range(gpus):
            if i != j:
                fabric.link(i, j, 1.0, latency)
    return fabric


def chunk(origin, to, us=10.0, **keys):
    """`us`: of its bytes at 1 GB/s. With a list of GPUs as origin: several sources."""
    return {"sources": origin if isinstance(origin, list) else [origin], "to": to, "bytes": us * US, **keys}


def total(sources, to, us=10.0, **keys):
    return chunk(sources, to, us, reduce=1, **keys)


def send(c, link, start, length, op=0, **keys):
    """Occupies the link for `length`; keys: transfer, rate; end and arrival only where they are wrong on purpose."""
    return {"chunk": c, "link": link, "start": start, "length": length, "op": op, **keys}


def schedule(fabric, chunks, sends, finish, collective="custom", size=None, bound=None, held=None, version=None, shape=None):
    """As a `rondo-schedule`, version 1 where that can say it."""
    sends = sorted(sends, key=lambda s: (s["start"], s["link"], s["chunk"]))
    latency = [link["latency_us"] for link in fabric.links]
    ends = [s["start"] + s["length"] for s in sends]
    columns = {"origin": [c["sources"][0] for c in chunks], "destinations": [c["to"] for c in chunks]}
    rows = {"chunk": [s["chunk"] for s in sends], "link": [s["link"] for s in sends], "start_us": [s["start"] for s in sends],
            "end_us": [s.get("end", end) for s, end in zip(sends, ends)],
            "arrival_us": [s.get("arrival", end + latency[s["link"]]) for s, end in zip(sends, ends)],
            "op": [s["op"] for s in sends]}
    if any("ready" in c for c in chunks):
        columns["ready_us"] = [c.get("ready", 0.0) for c in chunks]
    if any(len(c["sources"]) > 1 for c in chunks):
        columns["sources"] = [c["sources"] for c in chunks]
    if any("reduce" in c for c in chunks):
        columns["reduce"] = [c.get("reduce", 0) for c in chunks]
    if any("sources_ready" in c for c in chunks):
        columns["sources_ready_us"] = [c.get("sources_ready", [0.0] * len(c["sources"])) for c in chunks]
    for key, default in (("tenant", 0), ("priority", 1)):
        if any(key in c for c in chunks):
            columns[key] = [c.get(key, default) for c in chunks]
    if held:
        columns["held"] = held
    if any("transfer" in s for s in sends):
        rows["transfer"] = [s.get("transfer", -1) for s in sends]
    if any("rate" in s for s in sends):
        rows["rate_GBps"] = [s.get("rate") for s in sends]
    new = (any("reduce" in n or (n["kind"] == "gpu" and "buffer_bytes" in n) for n in fabric.nodes) or any({"message_us", "bandwidth_steps"} & l.keys() for l in fabric.links)
           or shape or (bound and (bound[1].get("kind") in ("partition", "time_cut", "prices", "knowledge", "joint_cuts", "message_prices") or "from_us" in bound[1]))
           or (columns.keys() | rows.keys()) & {"sources", "reduce", "sources_ready_us", "held", "transfer", "rate_GBps", "tenant",
                                                "priority"})
    version = version or (2 if new else 1)
    sizes = [c["bytes"] for c in chunks]
    size = size if size is not None else sum(sizes)
    result = {"format": "rondo-schedule", "version": version, "producer": "make_cases.py",
              "topology": {"format": "rondo-topology", "version": version, "name": "case", "nodes": fabric.nodes,
                           "links": fabric.links, "shared_bandwidth": fabric.shared},
              "collective": collective, "size_bytes": size, **(shape or {}),
              "chunk_bytes": sizes[0] if len(set(sizes)) == 1 else sizes,
              "chunks": columns, "sends": rows, "finish_us": finish}
    if bound:
        us, certificate = bound
        result["lower_bound"] = {"us": us, "certificate": certificate}
    return result


def changed(data, path, value):
    """A copy of `data` whose value at `path` (keys and indices) is another."""
    data = json.loads(json.dumps(data))
    place = data
    for key in path[:-1]:
        place = place[key]
    if value is ABSENT:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return data


class Cases:
    def __init__(self):
        self.files, self.verdicts = {}, {}

    def valid(self, name, data):
        self.add(name, data, {"valid": True, "finish_us": data["finish_us"]})

    def invalid(self, name, rule, data):
        self.add(name, data, {"valid": False, "rule": rule})

    def add(self, name, data, verdict):
        assert f"{name}.json" not in self.files, name
        self.files[f"{name}.json"], self.verdicts[f"{name}.json"] = data, verdict

    def write(self):
        folder = HERE / "cases"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, data in self.files.items():
            members = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()]
            (folder / name).write_text("{ " + ",\n  ".join(members) + " }\n")
        lines = [f"{json.dumps(name)}: {json.dumps(self.verdicts[name])}" for name in sorted(self.verdicts)]
        (HERE / "verdicts.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
