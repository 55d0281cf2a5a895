#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "rondo/core/nearest.hpp"
#include "rondo/core/units.hpp"
#include "rondo/io/json_object.hpp"
#include "rondo/io/sketch_files.hpp"

namespace rondo {
namespace {

constexpr int kMostNodesOfSketch = 1024;
constexpr int kMostChunksOfSketch = 1 << 20;

IntegerRange up_to(int most) {
  return {0, most};
}

/// A key that is a GPU's number.
int gpu_of(const std::string& key, int gpus, const std::string& place) {
  int number = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || end != key.data() + key.size() || number < 0 || number >= gpus) {
    throw Error(ExitCode::bad_data, fmt::format("{} has the key '{}'; keys are local GPUs, \"0\" to \"{}\"",
                                                place, key.substr(0, 40), gpus - 1));
  }
  return number;
}

/// {"1": [0, 2]}: local GPUs of local GPUs.
std::map<int, std::vector<int>> lists_of(const JsonObject& object, const char* key, int gpus) {
  const Json& json = object.at(key);
  const std::string place = object.place_of(key);
  if (!json.is_object()) object.refuse(fmt::format("{} is no object such as {{\"1\": [0]}}", key));
  std::map<int, std::vector<int>> lists;
  for (const auto& [name, value] : json.items()) {
    const std::string where = member_place(place, name);
    if (!value.is_array()) throw Error(ExitCode::bad_data, where + " is no list of local GPUs");
    std::vector<int> members;
    for (const std::int64_t g : integers_of(value, where, up_to(gpus - 1)))
      members.push_back(static_cast<int>(g));
    std::ranges::sort(members);
    if (members.empty() || std::ranges::adjacent_find(members) != members.end())
      throw Error(ExitCode::bad_data,
                  where + (members.empty() ? " is empty; leave it out" : " names a GPU twice"));
    lists[gpu_of(name, gpus, place)] = std::move(members);
  }
  return lists;
}

template <class Value>
Value one_of(const JsonObject& object, const std::string& what, const std::string& text,
             const std::vector<std::pair<std::string, Value>>& known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known) {
    if (name == text) return value;
    names.push_back(name);
  }
  object.refuse(
      fmt::format("{} is '{}'; it is one of {}{}", what, text, join(names), did_you_mean(text, names)));
}

void read_local(const JsonObject& local, int gpus, Sketch& sketch) {
  local.check_keys({"strategy", "switches", "switch_hyperedge_strategy"});
  using Local = Sketch::Local;
  sketch.local = one_of<Local>(local, "strategy", local.text("strategy"),
                               {{"none", Local::none},
                                {"switch", Local::switches},
                                {"minmax", Local::minmax},
                                {"maxmin", Local::maxmin}});
  const bool has_switches = local.has("switches") || local.has("switch_hyperedge_strategy");
  if (sketch.local != Local::switches) {
    if (has_switches) local.refuse("switches need strategy switch; leave them out, or name that one");
    return;
  }
  const Json& switches = local.array("switches");
  std::vector<std::set<int>> sets;
  for (std::size_t s = 0; s < switches.size(); ++s) {
    const std::string place = element_place(local.place_of("switches"), s);
    std::vector<int> members;
    for (const std::int64_t g : integers_of(switches[s], place, up_to(gpus - 1)))
      members.push_back(static_cast<int>(g));
    sets.emplace_back(members.begin(), members.end());
    if (sets.back().size() != members.size() || members.size() < 2)
      throw Error(ExitCode::bad_data, place + " has to name two GPUs or more, each once");
    for (std::size_t before = 0; before < s; ++before) {
      const bool meet = std::ranges::any_of(members, [&](int g) { return sets[before].contains(g); });
      if (meet && sets[before] != sets[s]) {
        throw Error(
            ExitCode::bad_data,
            fmt::format("{} has some GPUs of switches[{}]; two switches have the same GPUs or none in "
                        "common",
                        place, before));
      }
    }
    sketch.switches.push_back(std::move(members));
  }
  const Json& policies = local.array("switch_hyperedge_strategy");
  if (policies.size() != switches.size()) {
    local.refuse(fmt::format("switch_hyperedge_strategy has {} entries for {} switches; write one each",
                             policies.size(), switches.size()));
  }
  using Peers = Sketch::Peers;
  for (const Json& policy : policies) {
    sketch.peers.push_back(one_of<Peers>(
        local, "switch_hyperedge_strategy", policy.is_string() ? policy.get<std::string>() : policy.dump(),
        {{"uc-min", Peers::few}, {"uc-max", Peers::many}, {"free", Peers::any}}));
  }
}

/// [r1, r2]: what GPU p has leaves by p / r1 * r1 + r2.
std::map<int, std::vector<int>> relays_of(const std::vector<std::int64_t>& rule, const JsonObject& object,
                                          int gpus) {
  if (rule.size() != 2 || rule[0] < 1 || gpus % rule[0] != 0 || rule[1] >= rule[0]) {
    object.refuse(
        fmt::format("chunk_to_relay_map is [{}]; write [r1, r2] with r1 a divisor of {} GPUs and r2 less "
                    "than r1",
                    fmt::join(rule, ", "), gpus));
  }
  std::map<int, std::vector<int>> relays;
  for (int p = 0; p < gpus; ++p)
    relays[p / static_cast<int>(rule[0]) * static_cast<int>(rule[0]) + static_cast<int>(rule[1])].push_back(
        p);
  return relays;
}

void read_network(const JsonObject& network, int gpus, Sketch& sketch) {
  network.check_keys({"strategy", "internode_conn", "beta_split", "chunk_to_relay_map",
                      "gpus_to_sender_rev_map", "enforce_ordering"});
  one_of<int>(network, "strategy", network.text("strategy"), {{"relay", 0}});
  const Json& conn = network.at("internode_conn");
  if (conn.is_string()) {
    const bool direct = one_of<bool>(network, "internode_conn", conn.get<std::string>(),
                                     {{"fully-connected", false}, {"direct-map", true}});
    sketch.conn.emplace();
    for (int i = 0; i < gpus; ++i) {
      for (int j = 0; j < gpus; ++j) {
        if (!direct || i == j) (*sketch.conn)[i].push_back(j);
      }
    }
  } else {
    sketch.conn = lists_of(network, "internode_conn", gpus);
    if (sketch.conn->empty()) network.refuse("internode_conn is empty; name the senders of a node");
  }
  const auto check_sender = [&](int g, const char* field) {
    if (sketch.conn->contains(g)) return;
    network.refuse(
        fmt::format("{} names GPU {} as a sender, which internode_conn does not let send; add it there or "
                    "leave it out here",
                    field, g));
  };
  if (network.has("beta_split")) {
    const Json& split = network.at("beta_split");
    if (!split.is_object()) network.refuse("beta_split is no object such as {\"1\": 2}");
    for (const auto& [key, parts] : split.items()) {
      const int g = gpu_of(key, gpus, network.place_of("beta_split"));
      check_sender(g, "beta_split");
      if (!parts.is_number_integer() || parts.get<std::int64_t>() < 1 || parts.get<std::int64_t>() > 1024) {
        network.refuse(
            fmt::format("beta_split of GPU {} is {}; the sends of a GPU take 1 / n of a NIC, n from 1 to "
                        "1024",
                        g, parts.dump().substr(0, 40)));
      }
      sketch.bandwidth_parts[g] = parts.get<int>();
    }
  }
  if (network.has("gpus_to_sender_rev_map"))
    sketch.relays = lists_of(network, "gpus_to_sender_rev_map", gpus);
  if (network.has("chunk_to_relay_map")) {
    const auto relays = relays_of(network.integers("chunk_to_relay_map"), network, gpus);
    if (!sketch.relays.empty() && sketch.relays != relays) {
      network.refuse(
          "chunk_to_relay_map and gpus_to_sender_rev_map name other senders for the same GPUs; leave one of "
          "them out");
    }
    sketch.relays = relays;
  }
  std::set<int> served;
  for (const auto& [sender, members] : sketch.relays) {
    check_sender(sender,
                 network.has("gpus_to_sender_rev_map") ? "gpus_to_sender_rev_map" : "chunk_to_relay_map");
    served.insert(members.begin(), members.end());
  }
  if (!sketch.relays.empty() && static_cast<int>(served.size()) < gpus) {
    int missing = 0;
    while (served.contains(missing)) ++missing;
    network.refuse(
        fmt::format("gpus_to_sender_rev_map names no sender for what GPU {} has; name one", missing));
  }
  sketch.own_data_first = network.flag_or("enforce_ordering", false);
  if (sketch.own_data_first && sketch.relays.empty())
    network.refuse("enforce_ordering needs gpus_to_sender_rev_map, which says what is relayed");
}

}  // namespace

int nodes_of_sketch(const Json& json) {
  return static_cast<int>(JsonObject(json, "").integer("nnodes", {1, kMostNodesOfSketch}));
}

Sketch sketch_from_json(const Json& json, int gpus) {
  const JsonObject top(json, "");
  top.check_keys({"nnodes", "intranode_sketch", "internode_sketch", "symmetry_offsets", "hyperparameters"});
  Sketch sketch;
  sketch.nodes = nodes_of_sketch(json);
  if (gpus < 1 || gpus % sketch.nodes != 0)
    top.refuse(
        fmt::format("nnodes is {}, but there are {} GPUs; write a divisor of them", sketch.nodes, gpus));
  gpus /= sketch.nodes;
  read_local(JsonObject(top.at("intranode_sketch"), "intranode_sketch"), gpus, sketch);
  if (sketch.nodes > 1 && !top.has("internode_sketch"))
    top.refuse(fmt::format("internode_sketch is missing, with nnodes {}; say which GPUs send to other nodes",
                           sketch.nodes));
  if (sketch.nodes == 1 && top.has("internode_sketch"))
    top.refuse("internode_sketch says how nodes are joined, but nnodes is 1; leave it out");
  if (sketch.nodes > 1)
    read_network(JsonObject(top.at("internode_sketch"), "internode_sketch"), gpus, sketch);
  const Json& turns = top.array("symmetry_offsets");
  const int all = gpus * sketch.nodes;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const std::string place = element_place("symmetry_offsets", i);
    const auto turn = integers_of(turns[i], place, up_to(all));
    if (turn.size() != 2 || turn[1] < 2 || all % turn[1] != 0 || turn[0] < 1 || turn[0] >= turn[1]) {
      throw Error(
          ExitCode::bad_data,
          fmt::format(
              "{} is [{}]; write [offset, group] with a group that divides {} GPUs and an offset from "
              "1 to group - 1",
              place, fmt::join(turn, ", "), all));
    }
    sketch.symmetry.push_back({static_cast<int>(turn[0]), static_cast<int>(turn[1])});
  }
  const JsonObject more(top.at("hyperparameters"), "hyperparameters");
  more.check_keys({"input_chunkup", "input_size"});
  sketch.chunks = static_cast<int>(more.integer("input_chunkup", {1, kMostChunksOfSketch}));
  if (more.has("input_size")) {
    const Json& size = more.at("input_size");
    sketch.input_bytes = size.is_string() ? parse_size(size.get<std::string>()) : more.number("input_size");
    if (!(*sketch.input_bytes > 0)) more.refuse("input_size is not positive");
  }
  return sketch;
}

}  // namespace rondo
