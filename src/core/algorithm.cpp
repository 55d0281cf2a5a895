#include "rondo/core/algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/transfers.hpp"

namespace rondo {
namespace {

/// Words of the sets of sources that settle() keeps at most.
constexpr std::size_t kMaxWords = std::size_t{1} << 27;

/// Per chunk and GPU the sources of what the GPU holds.
class HeldSets {
 public:
  HeldSets(const Demand& demand, const std::string& name)
      : gpus_(demand.num_gpus()), words_(demand.has_several_sources() ? (gpus_ + 63) / 64 : 1) {
    if (demand.num_chunks() * gpus_ * words_ > kMaxWords) {
      throw Error(ExitCode::unavailable,
                  fmt::format("'{}' has {} chunks for {} GPUs, more than can be followed step by step", name,
                              demand.num_chunks(), gpus_));
    }
    bits_.resize(demand.num_chunks() * gpus_ * words_);
    for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
      const Contribution& part = demand.contribution(ChunkId(c));
      for (const GpuId g : part.all_sources()) {
        const std::size_t source = part.reduce ? g.index() : 0;
        at(ChunkId(c), g)[source / 64] |= std::uint64_t{1} << (source % 64);
      }
    }
  }

  std::span<std::uint64_t> at(ChunkId c, GpuId g) {
    return {bits_.data() + (c.index() * gpus_ + g.index()) * words_, words_};
  }
  std::vector<std::uint64_t> copy(ChunkId c, GpuId g) {
    const auto set = at(c, g);
    return {set.begin(), set.end()};
  }

 private:
  std::size_t gpus_;
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

bool is_empty(std::span<const std::uint64_t> set) {
  return std::ranges::all_of(set, [](std::uint64_t word) { return word == 0; });
}
bool contains(std::span<const std::uint64_t> whole, std::span<const std::uint64_t> part) {
  for (std::size_t w = 0; w < whole.size(); ++w) {
    if ((part[w] & ~whole[w]) != 0) return false;
  }
  return true;
}
bool are_disjoint(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  for (std::size_t w = 0; w < a.size(); ++w) {
    if ((a[w] & b[w]) != 0) return false;
  }
  return true;
}

/// What the destination does with what comes.
SendOp op_of(const AlgorithmSend& send, std::span<const std::uint64_t> comes,
             std::span<const std::uint64_t> there, const std::string& place) {
  const bool adds = send.op ? *send.op == SendOp::reduce : !contains(comes, there);
  if (adds ? are_disjoint(comes, there) : contains(comes, there)) return adds ? SendOp::reduce : SendOp::copy;
  throw Error(
      ExitCode::bad_data,
      fmt::format("{}: GPU {} {} chunk {} from GPU {} and {}; give each GPU's part to a sum once", place,
                  send.dst.value, adds ? "adds" : "copies", send.chunk.value, send.src.value,
                  adds ? "would count what it holds already twice" : "would lose what it has added up"));
}

}  // namespace

void settle(Algorithm& algorithm, const SendPlace& place) {
  const Demand& demand = algorithm.demand;
  HeldSets held(demand, algorithm.name);
  std::vector<AlgorithmSend>& sends = algorithm.sends;
  for (std::size_t begin = 0, end = 0; begin < sends.size(); begin = end) {
    std::vector<std::vector<std::uint64_t>> carried;
    for (; end < sends.size() && sends[end].step == sends[begin].step; ++end) {
      carried.push_back(held.copy(sends[end].chunk, sends[end].src));
      if (!is_empty(carried.back())) continue;
      throw Error(ExitCode::bad_data,
                  fmt::format("{}: GPU {} sends chunk {} and holds nothing of it then; send "
                              "it after it has come",
                              place(end), sends[end].src.value, sends[end].chunk.value));
    }
    for (std::size_t i = begin; i < end; ++i) {
      const auto there = held.at(sends[i].chunk, sends[i].dst);
      const auto& comes = carried[i - begin];
      sends[i].op = op_of(sends[i], comes, there, place(i));
      for (std::size_t w = 0; w < there.size(); ++w) there[w] |= comes[w];
    }
  }
  for (std::size_t c = 0; c < demand.num_chunks(); ++c) {
    const ChunkId chunk(c);
    const Contribution& part = demand.contribution(chunk);
    const auto count = static_cast<int>(part.reduce ? part.all_sources().size() : 1);
    for (const GpuId g : part.destinations) {
      int found = 0;
      for (const std::uint64_t word : held.at(chunk, g)) found += __builtin_popcountll(word);
      if (found == count) continue;
      throw Error(ExitCode::bad_data,
                  part.reduce
                      ? fmt::format("in the end GPU {} has the parts of {} of {} GPUs to the sum of "
                                    "chunk {}; send it the others",
                                    g.value, found, count, c)
                      : fmt::format("GPU {} never gets chunk {}, which starts at GPU {}; send it there",
                                    g.value, c, part.origin.value));
    }
  }
}

std::vector<AlgorithmSend> in_steps(const ProvenSchedule& proven) {
  const std::vector<Delivery> deliveries =
      transfers_of(proven.topology, proven.demand, proven.schedule.sends).deliveries;
  // A send comes a step after what it carries; what changes a sum that has been sent, not before that.
  std::map<std::pair<ChunkId, GpuId>, int> last_sent;
  std::vector<int> last_on_link(proven.topology.num_links(), 0);  // so that the order on links stays
  std::vector<int> step(deliveries.size(), 0);
  std::vector<AlgorithmSend> sends;
  for (std::size_t i = 0; i < deliveries.size(); ++i) {
    const Delivery& d = deliveries[i];
    int at = 0;
    // Of a sum, the last arrival hangs on the ones before.
    for (int cause = d.cause; cause >= 0; cause = deliveries[index(cause)].before)
      at = std::max(at, step[index(cause)] + 1);
    int& first = last_on_link[proven.schedule.sends[index(d.first_send)].link.index()];
    int& last = last_on_link[proven.schedule.sends[index(d.last_send)].link.index()];
    at = std::max({at, first, last});
    if (proven.demand.contribution(d.chunk).reduce) {
      const auto sent = last_sent.find({d.chunk, d.dst});
      if (sent != last_sent.end()) at = std::max(at, sent->second);
      int& own = last_sent[{d.chunk, d.src}];
      own = std::max(own, at);
    }
    step[i] = first = last = at;
    sends.push_back({.chunk = d.chunk, .src = d.src, .dst = d.dst, .step = at, .op = d.op});
  }
  std::ranges::stable_sort(sends, {}, &AlgorithmSend::step);
  return sends;
}

namespace {

using Signature = std::tuple<bool, std::vector<GpuId>, std::vector<GpuId>>;

Signature signature_of(const Datum& datum) {
  return {datum.reduce, datum.sources, datum.destinations};
}
Signature signature_of(const Contribution& part) {
  const auto sources = part.all_sources();
  return {part.reduce, {sources.begin(), sources.end()}, part.destinations};
}

/// The chunks of `one` (a chunk a contribution) in so many that they are the data; nothing where they are
/// not.
std::optional<RecognisedData> as(const Demand& one, std::span<const Datum> data, std::size_t count) {
  if (count % one.num_chunks() != 0) return std::nullopt;
  const Demand demand = one.with_chunks(static_cast<int>(count / one.num_chunks()));
  std::map<Signature, std::vector<ChunkId>> free;
  for (std::size_t c = demand.num_chunks(); c-- > 0;)
    free[signature_of(demand.contribution(ChunkId(c)))].push_back(ChunkId(c));
  std::vector<ChunkId> chunks;
  for (const Datum& datum : data) {
    chunks.emplace_back();
    if (datum.destinations.empty()) continue;
    const auto equal = free.find(signature_of(datum));
    if (equal == free.end() || equal->second.empty()) return std::nullopt;
    chunks.back() = equal->second.back();
    equal->second.pop_back();
  }
  return RecognisedData{demand, std::move(chunks)};
}

/// Before anything of that size is allocated.
bool may_be(Collective collective, std::span<const Datum> data, std::size_t count, std::size_t num_gpus) {
  if (collective->reduces) return data.front().reduce && count >= collective->input_parts(num_gpus);
  std::size_t deliveries = 0;
  for (const Datum& datum : data) deliveries += datum.destinations.size();
  const std::size_t outputs = collective->output.at_root_only ? 1 : num_gpus;
  return deliveries >= outputs * (collective->output_parts(num_gpus) - 1);
}

}  // namespace

RecognisedData recognise(std::span<const Datum> data, std::size_t num_gpus, double size_bytes,
                         std::optional<Collective> named) {
  const auto count = static_cast<std::size_t>(
      std::ranges::count_if(data, [](const Datum& datum) { return !datum.destinations.empty(); }));
  if (count == 0) throw Error(ExitCode::bad_data, "no GPU wants data of another; there is nothing to move");
  std::vector<Collective> candidates;
  if (named) candidates.push_back(*named);
  for (const CollectiveRow& row : collective_rows()) candidates.emplace_back(row);
  const Datum& first = *std::ranges::find_if(data, [](const Datum& d) { return !d.destinations.empty(); });
  for (const Collective collective : candidates) {
    if (collective == Collective::custom || !may_be(collective, data, count, num_gpus)) continue;
    std::vector<GpuId> roots{GpuId{0}};
    if (collective->has_root) roots = {first.sources.front(), first.destinations.front()};
    for (const GpuId root : roots) {
      const Demand one = make_demand(collective, size_bytes, num_gpus, 1, root);
      if (auto found = as(one, data, count)) return *std::move(found);
    }
  }
  std::vector<Contribution> parts;
  std::vector<ChunkId> chunks;
  for (const Datum& datum : data) {
    chunks.emplace_back();
    if (datum.destinations.empty()) continue;
    chunks.back() = ChunkId(parts.size());
    Contribution part{.origin = datum.sources.front(),
                      .bytes = size_bytes / static_cast<double>(count),
                      .destinations = datum.destinations,
                      .reduce = datum.reduce};
    if (datum.sources.size() > 1) part.sources = datum.sources;
    parts.push_back(std::move(part));
  }
  return {Demand(Collective::custom, size_bytes, num_gpus, std::move(parts), 1), std::move(chunks)};
}

}  // namespace rondo
