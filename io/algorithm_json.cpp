#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "rondo/core/error.hpp"
#include "rondo/io/algorithm_files.hpp"
#include "rondo/io/json_object.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMaxGpusOfAlgorithm = 4096;

/// A typed object of msccl-tools, or of TACCL and SCCL.
class TypedObject : public JsonObject {
 public:
  TypedObject(const Json& json, const std::string& place, const char* type) : JsonObject(json, place) {
    const char* key = has("msccl_type") ? "msccl_type" : "sccl_type";
    if (text(key) != type) refuse(fmt::format("{} is '{}', not '{}'", key, text(key), type));
  }
  bool is_msccl() const { return has("msccl_type"); }
};

/// "Allgather(n=8),chunks=2" names allgather.
std::optional<Collective> collective_named(const std::string& name) {
  std::string word;
  for (const char c : name.substr(0, name.find_first_of("(,"))) {
    if (c >= 'A' && c <= 'Z') word += static_cast<char>(c - 'A' + 'a');
    if (c >= 'a' && c <= 'z') word += c;
  }
  return find_collective(word);
}

std::vector<GpuId> gpus_of(const JsonObject& object, const char* key, std::size_t num_gpus) {
  std::vector<GpuId> gpus;
  for (const std::int64_t g : object.integers(key, {0, static_cast<std::int64_t>(num_gpus) - 1}))
    gpus.emplace_back(static_cast<std::int32_t>(g));
  std::ranges::sort(gpus);
  if (std::ranges::adjacent_find(gpus) != gpus.end())
    throw Error(ExitCode::bad_data, object.place_of(key) + " names a rank twice");
  return gpus;
}

/// Data by address. Chunks of one address that start at several ranks are parts of a sum.
std::map<std::int64_t, Datum> data_of(const TypedObject& collective, std::size_t num_gpus) {
  std::map<std::int64_t, Datum> data;
  collective.for_each_object("chunks", [&](const JsonObject& chunk, std::size_t) {
    chunk.check_keys({"msccl_type", "sccl_type", "pre", "post", "addr"});
    const std::vector<GpuId> pre = gpus_of(chunk, "pre", num_gpus);
    const std::vector<GpuId> post = gpus_of(chunk, "post", num_gpus);
    if (pre.empty()) chunk.refuse("pre is empty; name the rank where the chunk starts");
    const auto [at, is_new] = data.try_emplace(chunk.integer("addr"), Datum{pre, post, false});
    if (is_new) return;
    Datum& datum = at->second;
    if (pre.size() != 1 || (!datum.reduce && datum.sources.size() != 1) || datum.destinations != post) {
      chunk.refuse(
          fmt::format("addr {} is that of a chunk before: parts of one sum start at one rank each and "
                      "are wanted by the same ranks",
                      at->first));
    }
    datum.reduce = true;
    if (std::ranges::binary_search(datum.sources, pre.front()))
      chunk.refuse(fmt::format("rank {} has two parts of the sum at addr {}", pre.front().value, at->first));
    datum.sources.insert(std::ranges::upper_bound(datum.sources, pre.front()), pre.front());
  });
  for (auto& entry : data) {
    Datum& datum = entry.second;
    if (datum.reduce) continue;
    std::erase_if(datum.destinations, [&](GpuId g) { return std::ranges::binary_search(datum.sources, g); });
  }
  return data;
}

class AlgorithmReader {
 public:
  AlgorithmReader(const Json& json, double size_bytes)
      : top_(json, "", "algorithm"), collective_(top_.at("collective"), "collective", "collective") {
    top_.check_keys({"msccl_type", "sccl_type", "name", "instance", "input_map", "output_map", "steps",
                     "collective", "topology"});
    collective_.check_keys(
        {"msccl_type", "sccl_type", "name", "nodes", "chunks", "ranks", "triggers", "runtime_name"});
    const TypedObject instance(top_.at("instance"), "instance", "instance");
    instance.check_keys({"msccl_type", "sccl_type", "steps", "extra_rounds", "chunks", "pipeline",
                         "extra_memory", "allow_exchange"});
    refuse_unless_empty(instance, "pipeline", "repeats of it would overlap; give the algorithm of one run");
    refuse_unless_empty(collective_, "triggers",
                        "its sends wait for other chunks; give one without triggers");
    num_gpus_ = static_cast<std::size_t>(collective_.integer("nodes", {2, kMaxGpusOfAlgorithm}));
    std::vector<Datum> data;
    for (auto& [address, datum] : data_of(collective_, num_gpus_)) {
      position_[address] = data.size();
      data.push_back(std::move(datum));
    }
    std::optional<Collective> named = collective_named(collective_.text("name", kMaxName));
    if (!named && collective_.has("runtime_name"))
      named = collective_named(collective_.text("runtime_name", kMaxName));
    recognised_.emplace(recognise(data, num_gpus_, size_bytes, named));
  }

  Algorithm read() {
    Algorithm algorithm{top_.text("name", kMaxName), recognised_->demand, {}};
    const Json& steps = top_.array("steps");
    for (std::size_t s = 0; s < steps.size(); ++s) add_step(steps[s], s, algorithm.sends);
    settle(algorithm, [&](std::size_t i) { return places_[i]; });
    return algorithm;
  }

 private:
  static constexpr std::size_t kMaxName = 4096;

  static void refuse_unless_empty(const JsonObject& object, const char* key, const std::string& why) {
    if (!object.has(key)) return;
    const Json& value = object.at(key);
    if (value.is_null() || (value.is_object() && value.empty())) return;
    object.refuse(fmt::format("{}: {}", key, why), ExitCode::unavailable);
  }

  /// [addr, src, dst], with t and l of TACCL, and "rrc" where the destination adds.
  struct Read {
    AlgorithmSend send;
    double t = 0;
    std::string place;
    bool is_moved = false;  ///< data that somebody wants
  };

  Read read_send(const Json& json, const std::string& place) const {
    if (!json.is_array() || json.size() < 3 || json.size() > 6)
      throw Error(ExitCode::bad_data,
                  place + " is no list [addr, src, dst], or with t, l and \"rrc\" behind");
    const auto whole = [&](std::size_t i, const char* what, std::int64_t end) {
      if (!json[i].is_number_integer() || json[i].get<std::int64_t>() < 0 ||
          json[i].get<std::int64_t>() >= end) {
        throw Error(ExitCode::bad_data,
                    fmt::format("{}: {} is {}; it is 0 to {}", place, what, json[i].dump(), end - 1));
      }
      return json[i].get<std::int64_t>();
    };
    const std::int64_t address = whole(0, "addr", std::int64_t{1} << 31);
    const auto known = position_.find(address);
    if (known == position_.end()) {
      throw Error(ExitCode::bad_data,
                  fmt::format("{}: addr is {}, which no chunk of the collective has", place, address));
    }
    const auto count = static_cast<std::int64_t>(num_gpus_);
    Read read;
    read.place = place;
    read.send.chunk = recognised_->chunks[known->second];
    read.is_moved = read.send.chunk.valid();
    read.send.src = GpuId(static_cast<std::int32_t>(whole(1, "src", count)));
    read.send.dst = GpuId(static_cast<std::int32_t>(whole(2, "dst", count)));
    if (read.send.src == read.send.dst)
      throw Error(ExitCode::bad_data, fmt::format("{}: src and dst are both {}", place, read.send.src.value));
    if (json.size() > 3) {
      if (!json[3].is_number()) throw Error(ExitCode::bad_data, place + ": t is no number");
      read.t = json[3].get<double>();
    }
    if (json.size() == 6) {
      if (!json[5].is_null() && json[5] != "rrc") {
        throw Error(ExitCode::bad_data, fmt::format("{}: the last is {}; it is \"rrc\" or null", place,
                                                    json[5].dump().substr(0, 40)));
      }
      read.send.op = json[5].is_null() ? SendOp::copy : SendOp::reduce;
    }
    return read;
  }

  /// TACCL's steps begin where something rests on what came before; within one, times say the order.
  void add_step(const Json& json, std::size_t s, std::vector<AlgorithmSend>& sends) {
    const std::string place = element_place("steps", s);
    const TypedObject step(json, place, "step");
    step.check_keys({"msccl_type", "sccl_type", "rounds", "sends"});
    std::vector<Read> reads;
    const Json& list = step.array("sends");
    for (std::size_t i = 0; i < list.size(); ++i)
      reads.push_back(read_send(list[i], element_place(place + ".sends", i)));
    std::ranges::stable_sort(reads, {}, &Read::t);
    ++step_;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (i > 0 && reads[i].t > reads[i - 1].t) ++step_;
      if (!reads[i].is_moved) continue;
      reads[i].send.step = reads[i].send.message = step_;
      sends.push_back(reads[i].send);
      places_.push_back(std::move(reads[i].place));
    }
  }

  TypedObject top_;
  TypedObject collective_;
  std::size_t num_gpus_ = 0;
  std::map<std::int64_t, std::size_t> position_;  ///< of an address among the data
  std::optional<RecognisedData> recognised_;
  int step_ = -1;
  std::vector<std::string> places_;
};

}  // namespace

Algorithm algorithm_from_json(const Json& json, double size_bytes) {
  return AlgorithmReader(json, size_bytes).read();
}

Algorithm algorithm_from_any_json(const Json& json, double size_bytes) {
  if (json.is_object() && json.contains("7-Flows")) return algorithm_from_teccl_json(json, size_bytes);
  if (json.is_object() && (json.contains("msccl_type") || json.contains("sccl_type")))
    return algorithm_from_json(json, size_bytes);
  throw Error(
      ExitCode::bad_data,
      "this is no algorithm: it has neither msccl_type nor sccl_type (msccl-tools, TACCL), nor 7-Flows "
      "(TE-CCL)");
}

}  // namespace rondo
