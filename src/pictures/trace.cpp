#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_set>

#include "rondo/core/transfers.hpp"
#include "rondo/pictures/pictures.hpp"
#include "text.hpp"
#include "words.hpp"

namespace rondo {

using namespace pictures;

namespace {

constexpr std::size_t kMostArrows = 50'000;
constexpr int kLinks = 1, kGpus = 2, kRounds = 3;  // process ids: groups of tracks

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

/// Events, one a line.
class Trace {
 public:
  void add(const std::string& event) {
    text_ += text_.empty() ? "\n" : ",\n";
    text_ += event;
  }
  void name_process(int pid, const std::string& name) {
    add(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})", pid,
                    quoted(name)));
    add(fmt::format(
        R"({{"ph":"M","name":"process_sort_index","pid":{0},"tid":0,"args":{{"sort_index":{0}}}}})", pid));
  }
  void name_track(int pid, std::size_t tid, const std::string& name) {
    add(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", pid, tid,
                    quoted(name)));
    add(fmt::format(
        R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})", pid,
        tid));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_sends(const ProvenSchedule& proven, Trace& trace) {
  const Topology& topology = proven.topology;
  for (const Send& send : proven.schedule.sends) {
    trace.add(fmt::format(
        R"({{"ph":"X","cat":"send","name":"chunk {0}","pid":{1},"tid":{2},"ts":{3},"dur":{4},"args":{{"chunk":{0},"origin":{5},"bytes":{6},"arrival_us":{7}}}}})",
        send.chunk.value, kLinks, send.link.value, send.start_us, send.end_us - send.start_us,
        quoted(node_label(topology, topology.node_of(proven.demand.origin(send.chunk)))),
        proven.demand.bytes(send.chunk), send.arrival_us));
  }
}

void add_arrows(const ProvenSchedule& proven, Trace& trace) {
  const auto& sends = proven.schedule.sends;
  const Transfers transfers = transfers_of(proven.topology, proven.demand, sends);
  std::vector<int> cause =
      transfers.continued;  // per send: the one that brought the chunk to where it starts
  for (const Delivery& delivery : transfers.deliveries) {
    if (delivery.cause >= 0)
      cause[index(delivery.first_send)] = transfers.deliveries[index(delivery.cause)].last_send;
  }
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (cause[s] < 0) continue;
    const Send& before = sends[static_cast<std::size_t>(cause[s])];
    trace.add(fmt::format(R"({{"ph":"s","cat":"path","name":"path","id":{},"pid":{},"tid":{},"ts":{}}})", s,
                          kLinks, before.link.value, before.start_us));
    trace.add(
        fmt::format(R"({{"ph":"f","bp":"e","cat":"path","name":"path","id":{},"pid":{},"tid":{},"ts":{}}})",
                    s, kLinks, sends[s].link.value, sends[s].start_us));
  }
}

/// Marks of the first arrival of every chunk at a GPU, and how many of those it wants are missing.
void add_arrivals(const ProvenSchedule& proven, Trace& trace) {
  const Topology& topology = proven.topology;
  const auto& sends = proven.schedule.sends;
  std::vector<std::size_t> missing(topology.num_gpus(), 0);
  for (std::size_t c = 0; c < proven.demand.num_chunks(); ++c) {
    for (const GpuId g : proven.demand.destinations(ChunkId(c))) ++missing[g.index()];
  }
  const auto count = [&](GpuId gpu, double us) {
    trace.add(fmt::format(R"({{"ph":"C","name":{},"pid":{},"tid":{},"ts":{},"args":{{"chunks":{}}}}})",
                          quoted(node_label(topology, topology.node_of(gpu)) + " lacks"), kGpus, gpu.value,
                          us, missing[gpu.index()]));
  };
  for (std::size_t g = 0; g < missing.size(); ++g) count(GpuId(g), 0);

  std::vector<std::size_t> by_arrival(sends.size());
  std::iota(by_arrival.begin(), by_arrival.end(), std::size_t{0});
  std::stable_sort(by_arrival.begin(), by_arrival.end(),
                   [&](std::size_t a, std::size_t b) { return sends[a].arrival_us < sends[b].arrival_us; });
  std::unordered_set<std::size_t> held;  // chunk x GPU
  for (const std::size_t s : by_arrival) {
    const GpuId gpu = topology.gpu_of(topology.link(sends[s].link).dst);
    if (!gpu.valid() || !held.insert(sends[s].chunk.index() * missing.size() + gpu.index()).second) continue;
    trace.add(fmt::format(
        R"({{"ph":"i","s":"t","cat":"arrival","name":"chunk {0} is here","pid":{1},"tid":{2},"ts":{3},"args":{{"chunk":{0},"link":{4}}}}})",
        sends[s].chunk.value, kGpus, gpu.value, sends[s].arrival_us,
        quoted(link_label(topology, sends[s].link))));
    const auto wanting = proven.demand.destinations(sends[s].chunk);
    if (std::binary_search(wanting.begin(), wanting.end(), gpu)) {
      --missing[gpu.index()];
      count(gpu, sends[s].arrival_us);
    }
  }
}

void add_rounds(const std::vector<RoundSpan>& rounds, Trace& trace) {
  if (rounds.empty()) return;
  trace.name_process(kRounds, "rounds");
  trace.name_track(kRounds, 0, "rounds");
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    trace.add(fmt::format(
        R"({{"ph":"X","cat":"round","name":"round {}","pid":{},"tid":0,"ts":{},"dur":{},"args":{{}}}})", r,
        kRounds, rounds[r].begin_us, rounds[r].end_us - rounds[r].begin_us));
    trace.add(
        fmt::format(R"({{"ph":"i","s":"g","cat":"round","name":"round {} begins","pid":{},"tid":0,"ts":{}}})",
                    r, kRounds, rounds[r].begin_us));
  }
}

}  // namespace

std::string trace_json(const PictureSubject& subject) {
  const ProvenSchedule& proven = subject.proven;
  const Topology& topology = proven.topology;
  Trace trace;
  trace.name_process(kLinks, "links");
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    trace.name_track(
        kLinks, l,
        fmt::format("{} ({} GB/s)", link_label(topology, LinkId(l)), topology.links()[l].bandwidth_GBps));
  }
  trace.name_process(kGpus, "GPUs");
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    trace.name_track(kGpus, g, node_label(topology, topology.node_of(GpuId(g))));
  }
  add_rounds(subject.rounds, trace);
  add_sends(proven, trace);
  const bool arrows = proven.schedule.sends.size() <= kMostArrows;
  if (arrows) add_arrows(proven, trace);
  add_arrivals(proven, trace);
  return fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\n\"otherData\":{{\"title\":{},\"result\":{},\"arrows\":{}}},"
      "\n\"traceEvents\":[{}\n]}}\n",
      quoted(title_words(proven)), quoted(result_words(proven)),
      quoted(arrows ? "a chunk's path from send to send"
                    : fmt::format("left out: there are more than {} sends", kMostArrows)),
      trace.text());
}

}  // namespace rondo
