#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "rondo/core/error.hpp"
#include "rondo/io/algorithm_files.hpp"
#include "rondo/io/json_object.hpp"

namespace rondo {
namespace {

constexpr int kMaxNodeOfTeccl = 1'000'000;

/// Reads a sentence from left to right.
class Sentence {
 public:
  Sentence(std::string_view text, std::string place) : text_(text), rest_(text), place_(std::move(place)) {}

  bool skip(std::string_view words) {
    if (!rest_.starts_with(words)) return false;
    rest_.remove_prefix(words.size());
    return true;
  }
  void expect(std::string_view words) {
    if (!skip(words)) refuse();
  }
  template <class Number>
  Number number() {
    Number value{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) refuse();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (!(value >= 0 && value <= kMaxNodeOfTeccl)) refuse();
    return value;
  }
  void end() {
    if (!rest_.empty()) refuse();
  }
  [[noreturn]] void refuse() const {
    throw Error(
        ExitCode::bad_data,
        fmt::format("{} is '{}'; TE-CCL writes \"Chunk 0 from 1 traveled over 1->2 in epoch 3\", and "
                    "where it applies \"with volume 1.0\" before \"in\" and \"via switches 4 -> 5\" at "
                    "the end",
                    place_, std::string(text_.substr(0, 120))));
  }

 private:
  std::string_view text_;
  std::string_view rest_;
  std::string place_;
};

struct Flow {
  int chunk = 0;
  int origin = 0;
  int src = 0;
  int dst = 0;
  int epoch = 0;
  bool over_switches = false;
  std::string place;
};

int number_behind(const std::string& key, std::string_view word, const std::string& place) {
  Sentence sentence(key, place);
  sentence.expect(word);
  const int number = sentence.number<int>();
  sentence.end();
  return number;
}

/// Who wants which chunk of whom, by (origin, chunk).
using Wanted = std::map<std::pair<int, int>, std::set<int>>;

const Json& object_at(const Json& json, const std::string& place) {
  if (!json.is_object()) throw Error(ExitCode::bad_data, place + " is no object");
  return json;
}

/// {"GPU 1": {"GPU 2": {"Chunk 0": time}}}: destination, origin, chunk.
Wanted wanted_by_demands(const Json& demands) {
  Wanted wanted;
  const std::string place = "6-Demand_Met";
  for (const auto& [gpu, sources] : object_at(demands, place).items()) {
    const int destination = number_behind(gpu, "GPU ", place);
    for (const auto& [source, chunks] : object_at(sources, place + "." + gpu).items()) {
      const int origin = number_behind(source, "GPU ", place + "." + gpu);
      if (origin == destination) continue;
      for (const auto& [chunk, time] : object_at(chunks, place + "." + gpu + "." + source).items())
        wanted[{origin, number_behind(chunk, "Chunk ", place)}].insert(destination);
    }
  }
  return wanted;
}

/// {"Demand at 1 for chunk 0 from 2 met by epoch 3": ...}
Wanted wanted_by_paths(const Json& paths) {
  Wanted wanted;
  const std::string place = "8-Chunk paths";
  for (const auto& [text, path] : object_at(paths, place).items()) {
    Sentence sentence(text, place);
    sentence.expect("Demand at ");
    const int destination = sentence.number<int>();
    sentence.expect(" for chunk ");
    const int chunk = sentence.number<int>();
    sentence.expect(" from ");
    const int origin = sentence.number<int>();
    sentence.expect(" met by epoch ");
    sentence.number<int>();
    sentence.end();
    if (origin != destination) wanted[{origin, chunk}].insert(destination);
  }
  return wanted;
}

Wanted demands_of(const JsonObject& top) {
  if (top.has("6-Demand_Met")) return wanted_by_demands(top.at("6-Demand_Met"));
  if (top.has("8-Chunk paths")) return wanted_by_paths(top.at("8-Chunk paths"));
  throw Error(
      ExitCode::bad_data,
      "6-Demand_Met and 8-Chunk paths are missing (TE-CCL's A* writes neither), so who wants what is not "
      "known; give a schedule of its other solvers");
}

std::vector<Flow> flows_of(const JsonObject& top) {
  std::vector<Flow> flows;
  const Json& texts = top.array("7-Flows");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string place = element_place("7-Flows", i);
    if (!texts[i].is_string()) throw Error(ExitCode::bad_data, place + " is no text");
    const auto text = texts[i].get<std::string>();
    Sentence sentence(text, place);
    Flow flow;
    flow.place = place;
    sentence.expect("Chunk ");
    flow.chunk = sentence.number<int>();
    sentence.expect(" from ");
    flow.origin = sentence.number<int>();
    sentence.expect(" traveled over ");
    flow.src = sentence.number<int>();
    sentence.expect("->");
    flow.dst = sentence.number<int>();
    if (sentence.skip(" with volume ") && std::abs(sentence.number<double>() - 1) > 1e-6) {
      throw Error(
          ExitCode::unavailable,
          fmt::format("{} is '{}': chunks move whole here; solve with chunks that TE-CCL does not divide",
                      place, text.substr(0, 120)));
    }
    sentence.expect(" in epoch ");
    flow.epoch = sentence.number<int>();
    if (sentence.skip(" via switches ")) {
      flow.over_switches = true;
      do {
        sentence.number<int>();
      } while (sentence.skip(" -> "));
    }
    sentence.end();
    flows.push_back(std::move(flow));
  }
  std::ranges::stable_sort(flows, {}, &Flow::epoch);
  return flows;
}

}  // namespace

Algorithm algorithm_from_teccl_json(const Json& json, double size_bytes) {
  const JsonObject top(json, "");
  const auto wanted = demands_of(top);
  std::set<int> nodes;
  for (const auto& [chunk, destinations] : wanted) {
    nodes.insert(chunk.first);
    nodes.insert(destinations.begin(), destinations.end());
  }
  const auto gpu_of = [&](int node, const std::string& place) {
    const auto at = nodes.find(node);
    if (at == nodes.end()) {
      throw Error(ExitCode::bad_data,
                  fmt::format("{}: node {} is no GPU that a demand names; name the GPUs at both ends, and "
                              "switches behind \"via switches\"",
                              place, node));
    }
    return GpuId(static_cast<std::int32_t>(std::distance(nodes.begin(), at)));
  };
  std::vector<Datum> data;
  std::map<std::pair<int, int>, std::size_t> position;
  for (const auto& [chunk, destinations] : wanted) {
    position[chunk] = data.size();
    data.push_back({{gpu_of(chunk.first, "demand")}, {}, false});
    for (const int d : destinations) data.back().destinations.push_back(gpu_of(d, "demand"));
  }
  const RecognisedData recognised = recognise(data, nodes.size(), size_bytes, std::nullopt);
  Algorithm algorithm{"TE-CCL's schedule", recognised.demand, {}};
  const std::vector<Flow> flows = flows_of(top);
  for (const Flow& flow : flows) {
    const auto known = position.find({flow.origin, flow.chunk});
    if (known == position.end()) {
      throw Error(ExitCode::bad_data,
                  fmt::format("{}: nobody wants chunk {} from {}", flow.place, flow.chunk, flow.origin));
    }
    const GpuId src = gpu_of(flow.src, flow.place);
    const GpuId dst = gpu_of(flow.dst, flow.place);
    if (src == dst) throw Error(ExitCode::bad_data, flow.place + " leads from a node to itself");
    algorithm.sends.push_back({recognised.chunks[known->second], src, dst, flow.epoch});
    // What leaves a GPU in one epoch over one path leaves it once: TE-CCL's switches copy.
    algorithm.sends.back().switches_copy = flow.over_switches;
  }
  settle(algorithm, [&](std::size_t i) { return flows[i].place; });
  return algorithm;
}

}  // namespace rondo
