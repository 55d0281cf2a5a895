#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "analysis.hpp"
#include "rondo/core/replay.hpp"
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

/// Slices of a track must not overlap: sends that share a link get tracks of their own beside its first one.
class LinkTracks {
 public:
  explicit LinkTracks(const ProvenSchedule& proven) : of_link_(proven.topology.num_links()) {
    for (const Send& send : proven.schedule.sends) {
      auto& ends_us = of_link_[send.link.index()];
      const auto free = std::ranges::find_if(ends_us, [&](double end_us) {
        return end_us <= send.start_us || times_equal(end_us, send.start_us);
      });
      lane_.push_back(static_cast<std::size_t>(free - ends_us.begin()));
      if (free == ends_us.end()) {
        ends_us.push_back(send.end_us);
      } else {
        *free = send.end_us;
      }
    }
    std::size_t next = 0;
    for (const auto& lanes : of_link_) {
      first_.push_back(next);
      next += std::max<std::size_t>(1, lanes.size());
    }
  }
  std::size_t lanes(LinkId link) const { return std::max<std::size_t>(1, of_link_[link.index()].size()); }
  std::size_t id(LinkId link, std::size_t lane = 0) const { return first_[link.index()] + lane; }
  std::size_t of_send(const Send& send, std::size_t s) const { return id(send.link, lane_[s]); }

 private:
  std::vector<std::vector<double>> of_link_;  ///< per link and track: when it is free again
  std::vector<std::size_t> lane_;             ///< per send
  std::vector<std::size_t> first_;            ///< per link: the id of its first track
};

void name_links(const Topology& topology, const LinkTracks& tracks, Trace& trace) {
  trace.name_process(kLinks, "links");
  for (std::size_t l = 0; l < topology.num_links(); ++l) {
    for (std::size_t lane = 0; lane < tracks.lanes(LinkId(l)); ++lane) {
      trace.name_track(
          kLinks, tracks.id(LinkId(l), lane),
          fmt::format("{} ({} GB/s){}", link_label(topology, LinkId(l)), topology.links()[l].bandwidth_GBps,
                      lane == 0 ? "" : fmt::format(", shared, {}", lane + 1)));
    }
  }
}

void add_sends(const ProvenSchedule& proven, const LinkTracks& tracks, const SumFacts& sums, Trace& trace) {
  const Topology& topology = proven.topology;
  for (std::size_t s = 0; s < proven.schedule.sends.size(); ++s) {
    const Send& send = proven.schedule.sends[s];
    const Contribution& contribution = proven.demand.contribution(send.chunk);
    const bool adds = sums.adds[s] != 0;
    const std::string what =
        contribution.reduce
            ? fmt::format(R"("adds":{},"sources":{},"of":{})", adds, sums.sources[s],
                          contribution.sources.size())
            : fmt::format(R"("origin":{})",
                          quoted(node_label(topology, topology.node_of(contribution.origin))));
    trace.add(fmt::format(
        R"({{"ph":"X","cat":"{}","name":"{}chunk {}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"chunk":{},{},"bytes":{},"arrival_us":{}}}}})",
        adds ? "add" : "send", adds ? "+ " : "", send.chunk.value, kLinks, tracks.of_send(send, s),
        send.start_us, send.end_us - send.start_us, send.chunk.value, what, proven.demand.bytes(send.chunk),
        send.arrival_us));
  }
}

/// The load of links that several sends share.
void add_loads(const ProvenSchedule& proven, const LinkTracks& tracks, Trace& trace) {
  const std::vector<double> shares = link_shares(proven);
  std::vector<std::map<double, double>> changes(proven.topology.num_links());
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const Send& send = proven.schedule.sends[s];
    if (tracks.lanes(send.link) == 1) continue;
    const double GBps = shares[s] * proven.topology.link(send.link).bandwidth_GBps;
    changes[send.link.index()][send.start_us] += GBps;
    changes[send.link.index()][send.end_us] -= GBps;
  }
  for (std::size_t l = 0; l < changes.size(); ++l) {
    double GBps = 0;
    for (const auto& [us, change] : changes[l]) {
      GBps += change;
      trace.add(fmt::format(R"({{"ph":"C","name":{},"pid":{},"tid":{},"ts":{},"args":{{"GBps":{:.6g}}}}})",
                            quoted(link_label(proven.topology, LinkId(l)) + " load"), kLinks,
                            tracks.id(LinkId(l)), us, std::max(0.0, GBps)));
    }
  }
}

/// From every send to those that carry on what it brings: a sum goes on from all that was added to it since
/// it was last sent.
void add_arrows(const ProvenSchedule& proven, const LinkTracks& tracks, const Transfers& transfers,
                Trace& trace) {
  const auto& sends = proven.schedule.sends;
  std::size_t id = 0;
  const auto arrow = [&](int from, std::size_t to) {
    const Send& before = sends[index(from)];
    trace.add(fmt::format(R"({{"ph":"s","cat":"path","name":"path","id":{},"pid":{},"tid":{},"ts":{}}})", id,
                          kLinks, tracks.of_send(before, index(from)), before.start_us));
    trace.add(
        fmt::format(R"({{"ph":"f","bp":"e","cat":"path","name":"path","id":{},"pid":{},"tid":{},"ts":{}}})",
                    id++, kLinks, tracks.of_send(sends[to], to), sends[to].start_us));
  };
  for (std::size_t s = 0; s < sends.size(); ++s) {
    if (transfers.continued[s] >= 0) arrow(transfers.continued[s], s);
    if (!transfers.added_into.empty() && transfers.added_into[s] >= 0)
      arrow(static_cast<int>(s), index(transfers.added_into[s]));
  }
  std::vector<char> has_arrow(sends.size(), 0);  // copied in a switch, a first send has several deliveries
  std::vector<char> carried_on(transfers.deliveries.size(), 0);
  for (const Delivery& delivery : transfers.deliveries) {
    if (has_arrow[index(delivery.first_send)]) continue;
    has_arrow[index(delivery.first_send)] = 1;
    for (int c = delivery.cause; c >= 0; c = transfers.deliveries[index(c)].before) {
      if (c != delivery.cause && carried_on[index(c)]) break;
      carried_on[index(c)] = 1;
      arrow(transfers.deliveries[index(c)].last_send, index(delivery.first_send));
    }
  }
}

/// Marks of what a GPU comes to have: the first arrival of a chunk, every change of a partial sum; and how
/// many of the chunks that it wants it lacks.
void add_arrivals(const ProvenSchedule& proven, const Transfers& transfers, Trace& trace) {
  const Topology& topology = proven.topology;
  const auto& deliveries = transfers.deliveries;
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

  const ChunkGpuTable<int> first = first_arrivals(proven.demand, deliveries);
  const std::vector<int> held = sources_held(proven.demand, deliveries);
  std::vector<int> by_arrival(deliveries.size());
  std::iota(by_arrival.begin(), by_arrival.end(), 0);
  std::ranges::stable_sort(by_arrival, {}, [&](int d) { return deliveries[index(d)].arrival_us; });
  for (const int d : by_arrival) {
    const Delivery& delivery = deliveries[index(d)];
    const Contribution& contribution = proven.demand.contribution(delivery.chunk);
    const bool is_first = first(delivery.chunk, delivery.dst) == d;
    if (!contribution.reduce && !is_first) continue;
    const bool is_part = contribution.reduce && held[index(d)] < std::ssize(contribution.sources);
    const std::string what =
        is_part ? fmt::format("has the sum of {} of {}", held[index(d)], contribution.sources.size())
                : std::string(contribution.reduce ? "is summed up" : "is here");
    trace.add(fmt::format(
        R"({{"ph":"i","s":"t","cat":"{5}","name":"chunk {0} {6}","pid":{1},"tid":{2},"ts":{3},"args":{{"chunk":{0},"link":{4}}}}})",
        delivery.chunk.value, kGpus, delivery.dst.value, delivery.arrival_us,
        quoted(link_label(topology, proven.schedule.sends[index(delivery.last_send)].link)),
        is_part ? "partial sum" : "arrival", what));
    if (is_first && std::ranges::binary_search(contribution.destinations, delivery.dst)) {
      --missing[delivery.dst.index()];
      count(delivery.dst, delivery.arrival_us);
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
  const LinkTracks tracks(proven);
  name_links(topology, tracks, trace);
  trace.name_process(kGpus, "GPUs");
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    trace.name_track(kGpus, g, node_label(topology, topology.node_of(GpuId(g))));
  }
  add_rounds(subject.rounds, trace);
  const Transfers transfers = transfers_of(topology, proven.demand, proven.schedule.sends);
  add_sends(proven, tracks, sum_facts(proven), trace);
  add_loads(proven, tracks, trace);
  const bool arrows = proven.schedule.sends.size() <= kMostArrows;
  if (arrows) add_arrows(proven, tracks, transfers, trace);
  add_arrivals(proven, transfers, trace);
  return fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\n\"otherData\":{{\"title\":{},\"result\":{},\"arrows\":{}}},"
      "\n\"traceEvents\":[{}\n]}}\n",
      quoted(title_words(proven)), quoted(result_words(proven)),
      quoted(arrows ? "a chunk's path from send to send"
                    : fmt::format("left out: there are more than {} sends", kMostArrows)),
      trace.text());
}

}  // namespace rondo
