#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/io/algorithm_files.hpp"

namespace rondo {
namespace {

/// Both dialects count data in the order in which outputs name them: part by part, GPU by GPU.
struct Address {
  std::vector<GpuId> pre = {};
  std::vector<GpuId> post = {};
  bool is_sum = false;
};

std::vector<Address> addresses_of(const Demand& demand) {
  const Collective collective = demand.collective();
  const std::size_t gpus = demand.num_gpus();
  std::vector<Address> addresses;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> known;  // by GPU and part
  collective->for_each_output_part(
      gpus, root_of(demand).index(), [&](const OutputPart& to, const InputPart& from) {
        const auto [at, is_new] = known.try_emplace({from.gpu, from.part}, addresses.size());
        if (is_new) {
          addresses.push_back({.is_sum = from.gpu == InputPart::kSumOfAll});
          for (std::size_t g = 0; g < gpus; ++g) {
            if (addresses.back().is_sum || g == from.gpu) addresses.back().pre.emplace_back(g);
          }
        }
        addresses[at->second].post.emplace_back(to.gpu);
      });
  return addresses;
}

/// "Allgather" of "allgather", "ReduceScatter" of "reduce_scatter".
std::string name_of(Collective collective) {
  std::string name;
  bool begins = true;
  for (const char c : to_string(collective)) {
    if (c != '_') name += begins ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '_';
  }
  return name;
}

Json numbers(const std::vector<GpuId>& gpus) {
  Json json = Json::array();
  for (const GpuId g : gpus) json.push_back(g.value);
  return json;
}

class AlgorithmWriter {
 public:
  AlgorithmWriter(const ProvenSchedule& proven, AlgorithmDialect dialect)
      : proven_(proven),
        demand_(proven.demand),
        is_taccl_(dialect == AlgorithmDialect::taccl),
        chunks_(demand_.chunks_per_contribution()) {
    if (demand_.collective() == Collective::custom || !demand_.shape().is_plain()) {
      throw Error(
          ExitCode::unavailable,
          "these algorithm files hold equal parts of a named collective of all GPUs; use --format json "
          "or msccl-xml");
    }
    if (demand_.collective() == Collective::custom || !demand_.shape().is_plain() ||
        !demand_.uniform_chunk_bytes())
      refuse_parts();
    chunks_ = static_cast<int>(demand_.num_chunks()) / count_moved(addresses_of(demand_));
    number_chunks();
    measure_links();
  }

  Json write() const {
    const std::vector<AlgorithmSend> sends = in_steps(proven_);
    Json steps = Json::array();
    int num_rounds = 0;
    for (std::size_t begin = 0, end = 0; begin < sends.size(); begin = end) {
      while (end < sends.size() && sends[end].step == sends[begin].step) ++end;
      std::map<std::pair<GpuId, GpuId>, int> on_link;
      int rounds = 1;
      Json list = Json::array();
      for (std::size_t i = begin; i < end; ++i) {
        const AlgorithmSend& send = sends[i];
        const int links = links_[send.dst.index()][send.src.index()];
        const int load = ++on_link[{send.src, send.dst}];
        rounds = std::max(rounds, links > 0 ? (load + links - 1) / links : load);
        Json row = {address_[send.chunk.index()], send.src.value, send.dst.value};
        // Times need only say the order: one a step.
        if (is_taccl_) row.insert(row.end(), {send.step, 0});
        if (is_taccl_ && demand_.collective()->reduces)
          row.push_back(send.op == SendOp::reduce ? Json("rrc") : Json());
        list.push_back(std::move(row));
      }
      num_rounds += rounds;
      steps.push_back({{type(), "step"}, {"rounds", rounds}, {"sends", std::move(list)}});
    }
    const auto num_steps = static_cast<int>(steps.size());
    const Json instance = {
        {type(), "instance"},     {"steps", num_steps},  {"extra_rounds", num_rounds - num_steps},
        {"chunks", chunks_},      {"pipeline", nullptr}, {"extra_memory", nullptr},
        {"allow_exchange", false}};
    return {{type(), "algorithm"},
            {"name", fmt::format("{}-{}-steps={},rounds={},chunks={}", name(), proven_.topology.name(),
                                 num_steps, num_rounds, chunks_)},
            {"instance", instance},
            {"input_map", map_of(&Address::pre)},
            {"output_map", map_of(&Address::post)},
            {"steps", std::move(steps)},
            {"collective", collective()},
            {"topology", topology()}};
  }

 private:
  const char* type() const { return is_taccl_ ? "sccl_type" : "msccl_type"; }

  [[noreturn]] static void refuse_parts() {
    throw Error(
        ExitCode::unavailable,
        "these algorithm files hold equal parts of a named collective of all GPUs; use --format json or "
        "msccl-xml");
  }

  static int count_moved(const std::vector<Address>& addresses) {
    return static_cast<int>(
        std::ranges::count_if(addresses, [](const Address& a) { return a.is_sum || a.pre != a.post; }));
  }

  std::string name() const {
    const std::string of = name_of(demand_.collective());
    const std::string root =
        demand_.collective()->has_root ? fmt::format(",root={}", root_of(demand_).value) : "";
    return fmt::format("{}(n={}{}){}", of, demand_.num_gpus(), root,
                       chunks_ > 1 ? fmt::format(",chunks={}", chunks_) : "");
  }

  void number_chunks() {
    using Signature = std::tuple<bool, std::vector<GpuId>, std::vector<GpuId>>;
    std::map<Signature, std::vector<int>> free;  // addresses, descending
    for (const Address& a : addresses_of(demand_)) {
      for (int k = 0; k < chunks_; ++k) addresses_.push_back(a);
    }
    for (std::size_t a = addresses_.size(); a-- > 0;) {
      std::vector<GpuId> destinations = addresses_[a].post;
      if (!addresses_[a].is_sum) std::erase(destinations, addresses_[a].pre.front());
      free[{addresses_[a].is_sum, addresses_[a].pre, destinations}].push_back(static_cast<int>(a));
    }
    for (std::size_t c = 0; c < demand_.num_chunks(); ++c) {
      const Contribution& part = demand_.contribution(ChunkId(c));
      const auto sources = part.all_sources();
      std::vector<int>& equal = free[{part.reduce, {sources.begin(), sources.end()}, part.destinations}];
      if (equal.empty()) refuse_parts();
      address_.push_back(equal.back());
      equal.pop_back();
    }
  }

  Json map_of(std::vector<GpuId> Address::*member) const {
    std::map<std::int32_t, Json> lists;
    for (std::size_t a = 0; a < addresses_.size(); ++a) {
      for (const GpuId g : addresses_[a].*member)
        lists.try_emplace(g.value, Json::array()).first->second.push_back(a);
    }
    Json json = Json::object();
    for (auto& [gpu, list] : lists) json[std::to_string(gpu)] = std::move(list);
    return json;
  }

  Json collective() const {
    Json chunks = Json::array();
    std::vector<Json> pre(demand_.num_gpus(), Json::array()), post = pre;
    for (std::size_t a = 0; a < addresses_.size(); ++a) {
      const Address& address = addresses_[a];
      const auto add = [&](const std::vector<GpuId>& from) {
        for (const GpuId g : from) pre[g.index()].push_back(chunks.size());
        for (const GpuId g : address.post) post[g.index()].push_back(chunks.size());
        chunks.push_back(
            {{type(), "chunk"}, {"pre", numbers(from)}, {"post", numbers(address.post)}, {"addr", a}});
      };
      if (!address.is_sum) {
        add(address.pre);
        continue;
      }
      for (const GpuId g : address.pre) add({g});
    }
    Json json = {{type(), "collective"}, {"name", name()}, {"nodes", demand_.num_gpus()}, {"chunks", chunks}};
    if (is_taccl_) {
      json["ranks"] = Json::array();
      for (std::size_t g = 0; g < pre.size(); ++g)
        json["ranks"].push_back({{type(), "rank"}, {"pre", pre[g]}, {"post", post[g]}, {"id", g}});
    }
    json["triggers"] = Json::object();
    if (!is_taccl_) json["runtime_name"] = to_string(demand_.collective());
    return json;
  }

  /// Per [dst][src] how many of the slowest links between GPUs the fastest way there is worth, and the time
  /// of a chunk over it; 0 where none joins them.
  void measure_links() {
    const std::size_t gpus = demand_.num_gpus();
    links_.assign(gpus, std::vector<int>(gpus, 0));
    times_ = links_;
    const HopTable hops(proven_.topology);
    double slowest = 0;
    for (const Hop& hop : hops.hops()) slowest = std::max(slowest, hop.us_per_byte);
    for (const Hop& hop : hops.hops()) {
      int& links = links_[hop.dst.index()][hop.src.index()];
      int& time = times_[hop.dst.index()][hop.src.index()];
      const auto chunk_us = static_cast<int>(std::ceil(hop.duration_us(demand_.bytes(ChunkId{0}))));
      time = links == 0 ? chunk_us : std::min(time, chunk_us);
      links = std::max(links, static_cast<int>(slowest / hop.us_per_byte + 1e-6));
    }
  }

  Json topology() const {
    if (!is_taccl_) {
      return {{type(), "topology"},
              {"name", proven_.topology.name()},
              {"switches", Json::array()},
              {"links", links_}};
    }
    return {{type(), "topology"},
            {"name", proven_.topology.name()},
            {"copies", 1},
            {"ngpus_per_node", demand_.num_gpus()},
            {"node_links", links_},
            {"node_invbws", times_},
            {"remote_invbw", nullptr},
            {"remote_alpha", nullptr},
            {"remote_beta", nullptr},
            {"internode_conn", nullptr},
            {"local_switches", Json::array()}};
  }

  const ProvenSchedule& proven_;
  const Demand& demand_;
  bool is_taccl_;
  int chunks_;                      ///< of a datum
  std::vector<Address> addresses_;  ///< one a chunk of a datum
  std::vector<int> address_;        ///< per chunk of the demand
  std::vector<std::vector<int>> links_;
  std::vector<std::vector<int>> times_;
};

}  // namespace

Json algorithm_to_json(const ProvenSchedule& proven, AlgorithmDialect dialect) {
  return AlgorithmWriter(proven, dialect).write();
}

}  // namespace rondo
