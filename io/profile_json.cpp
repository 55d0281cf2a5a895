#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "rondo/io/json_object.hpp"
#include "rondo/io/sketch_files.hpp"

namespace rondo {
namespace {

constexpr int kMostGpusOfProfile = 1024;

/// NVLink pairs of a DGX-1 (NDv2): with two links each, and with one.
constexpr std::array<std::pair<int, int>, 8> kDouble{
    {{0, 1}, {1, 3}, {3, 2}, {2, 6}, {6, 7}, {7, 5}, {5, 4}, {4, 0}}};
constexpr std::array<std::pair<int, int>, 8> kSingle{
    {{0, 2}, {0, 3}, {1, 2}, {1, 5}, {3, 7}, {4, 6}, {4, 7}, {5, 6}}};

double time_of(const JsonObject& top, const char* key, bool may_be_0) {
  const double us = top.number(key);
  if (us < 0 || (us == 0 && !may_be_0) || us > 1e12)
    top.refuse(fmt::format("{} is {}; it is a time of {} to 1e12", key, us, may_be_0 ? "0" : "more than 0"));
  return us;
}

/// [dst][src]: square, as wide as the node has GPUs.
std::vector<std::vector<double>> matrix_of(const JsonObject& top, const char* key, int gpus) {
  const Json& rows = top.array(key);
  std::vector<std::vector<double>> matrix;
  for (std::size_t r = 0; r < rows.size(); ++r) matrix.push_back(numbers_of(rows[r], element_place(key, r)));
  for (std::size_t r = 0; r < std::max<std::size_t>(matrix.size(), 1); ++r) {
    const std::size_t width = matrix.empty() ? 0 : matrix[r].size();
    if (matrix.size() == static_cast<std::size_t>(gpus) && width == matrix.size()) continue;
    top.refuse(
        fmt::format("{} has {} rows and row {} has {} numbers; gpus_per_node is {}: write a row a GPU that "
                    "receives, with a number a GPU that sends",
                    key, matrix.size(), r, width, gpus));
  }
  return matrix;
}

void read_matrices(const JsonObject& top, NodeProfile& profile) {
  const auto links = matrix_of(top, "links", profile.gpus);
  const auto betas = matrix_of(top, "betas", profile.gpus);
  if (top.has("invbws")) matrix_of(top, "invbws", profile.gpus);
  for (int dst = 0; dst < profile.gpus; ++dst) {
    for (int src = 0; src < profile.gpus; ++src) {
      const double count = links[static_cast<std::size_t>(dst)][static_cast<std::size_t>(src)];
      const double beta = betas[static_cast<std::size_t>(dst)][static_cast<std::size_t>(src)];
      if (count < 0 || count > 64 || count != static_cast<int>(count) || (src == dst && count > 0)) {
        top.refuse(
            fmt::format("links[{}][{}] is {}; it is the number of links from GPU {} to GPU {}, 0 to 64{}",
                        dst, src, count, src, dst, src == dst ? ", and 0 on the diagonal" : ""));
      }
      if (count == 0) continue;
      if (!(beta > 0 && beta < 1e12)) {
        top.refuse(
            fmt::format("betas[{}][{}] is {} where links has {}; it is the time of a chunk, more than 0", dst,
                        src, beta, count));
      }
      profile.pairs.push_back({src, dst, static_cast<int>(count), beta});
    }
  }
  if (profile.pairs.empty()) top.refuse("links has no link");
}

void read_kinds(const JsonObject& top, NodeProfile& profile) {
  const std::vector<double> betas = top.numbers("node_betas_list");
  for (const double beta : betas) {
    if (!(beta > 0 && beta < 1e12))
      top.refuse(fmt::format("node_betas_list has {}; times are more than 0", beta));
  }
  if (betas.size() == 1) {
    profile.switch_beta = betas.front();
  } else if (betas.size() == 2 && profile.gpus == 8) {
    const auto add = [&](const auto& pairs, double beta) {
      for (const auto& [a, b] : pairs) {
        profile.pairs.push_back({a, b, 1, beta});
        profile.pairs.push_back({b, a, 1, beta});
      }
    };
    add(kDouble, betas[0]);
    add(kSingle, betas[1]);
  } else {
    top.refuse(fmt::format(
        "node_betas_list has {} times for {} GPUs; write one (all behind a switch), two for the 8 "
        "GPUs of an NDv2 (pairs of two links, of one), or links and betas as matrices",
        betas.size(), profile.gpus));
  }
}

/// Builds the fabric: GPUs node by node, then switches.
class ProfiledFabric {
 public:
  ProfiledFabric(const NodeProfile& profile, const ProfileUse& use) : profile_(profile), use_(use) {}

  Topology build() {
    data_.name = use_.nodes == 1 ? profile_.name : fmt::format("{}x{}", profile_.name, use_.nodes);
    data_.source = fmt::format("profile {}: alpha as message cost, chunks of {} bytes, times in {} us",
                               profile_.name, use_.chunk_bytes, use_.unit_us);
    for (int n = 0; n < use_.nodes; ++n) {
      for (int g = 0; g < profile_.gpus; ++g)
        data_.nodes.push_back({.kind = NodeKind::gpu, .chassis = n, .name = fmt::format("c{}g{}", n, g)});
    }
    for (int n = 0; n < use_.nodes; ++n) add_local_links(n);
    if (use_.nodes > 1) add_network();
    return Topology(std::move(data_));
  }

 private:
  NodeId gpu(int node, int local) const { return NodeId(node * profile_.gpus + local); }

  NodeId add_switch(int node, const std::string& name) {
    data_.nodes.push_back({.kind = NodeKind::switch_,
                           .chassis = node,
                           .name = fmt::format("c{}{}", node, name),
                           .multicast = false});
    return NodeId(data_.nodes.size() - 1);
  }
  void add_link(NodeId src, NodeId dst, double beta, double alpha) {
    data_.links.push_back({.src = src,
                           .dst = dst,
                           .bandwidth_GBps = use_.chunk_bytes / (beta * use_.unit_us) / 1e3,
                           .message_us = alpha * use_.unit_us});
  }

  /// How many switches of the sketch join both.
  int switches_of(int a, int b) const {
    if (use_.sketch == nullptr) return 1;
    const auto joins = [&](const std::vector<int>& members) {
      return std::ranges::find(members, a) != members.end() && std::ranges::find(members, b) != members.end();
    };
    return std::max(1, static_cast<int>(std::ranges::count_if(use_.sketch->switches, joins)));
  }

  void add_local_links(int node) {
    for (const NodeProfile::Pair& pair : profile_.pairs) {
      for (int k = 0; k < pair.links; ++k)
        add_link(gpu(node, pair.src), gpu(node, pair.dst), pair.beta / switches_of(pair.src, pair.dst),
                 profile_.alpha);
    }
    if (!profile_.switch_beta) return;
    const NodeId joint = add_switch(node, "switch");
    for (int g = 0; g < profile_.gpus; ++g) {
      const double beta = *profile_.switch_beta / switches_of(g, g);
      add_link(gpu(node, g), joint, beta, profile_.alpha);
      add_link(joint, gpu(node, g), beta, profile_.alpha);
    }
  }

  void add_network() {
    if (profile_.nics == 0) {
      throw Error(
          ExitCode::bad_data,
          fmt::format(
              "profile {} has no nics_per_node, so {} nodes cannot be joined; add it with remote_alpha "
              "and remote_beta, or take one node",
              profile_.name, use_.nodes));
    }
    const int per_nic = profile_.gpus / profile_.nics;
    const auto add = [&](NodeId src, NodeId dst) {
      add_link(src, dst, profile_.remote_beta, profile_.remote_alpha);
    };
    std::vector<NodeId> arrivals;  // by node and NIC: what comes from other nodes
    for (int n = 0; n < use_.nodes; ++n) {
      for (int k = 0; k < profile_.nics; ++k) {
        const NodeId in = add_switch(n, fmt::format("nic{}.in", k));
        for (int g = k * per_nic; g < (k + 1) * per_nic; ++g) add(in, gpu(n, g));
        // The links of several nodes meet before the NIC.
        arrivals.push_back(use_.nodes > 2 ? add_switch(n, fmt::format("nic{}.port", k)) : in);
        if (use_.nodes > 2) add(arrivals.back(), in);
      }
    }
    for (int n = 0; n < use_.nodes; ++n) {
      const NodeId network = add_switch(n, "network");
      for (int k = 0; k < profile_.nics; ++k) {
        const NodeId out = add_switch(n, fmt::format("nic{}.out", k));
        for (int g = k * per_nic; g < (k + 1) * per_nic; ++g) add(gpu(n, g), out);
        add(out, network);
      }
      for (int other = 0; other < use_.nodes; ++other) {
        for (int k = 0; k < profile_.nics && other != n; ++k)
          add(network, arrivals[static_cast<std::size_t>(other * profile_.nics + k)]);
      }
    }
  }

  const NodeProfile& profile_;
  const ProfileUse& use_;
  TopologyData data_;
};

}  // namespace

NodeProfile profile_from_json(const Json& json) {
  const JsonObject top(json, "");
  top.check_keys({"name", "gpus_per_node", "nics_per_node", "alpha", "node_betas_list", "node_invbws_list",
                  "links", "betas", "invbws", "remote_alpha", "remote_beta", "remote_invbw"});
  NodeProfile profile;
  profile.name = top.text("name");
  profile.gpus = static_cast<int>(top.integer("gpus_per_node", {2, kMostGpusOfProfile}));
  profile.alpha = time_of(top, "alpha", true);
  if (top.has("links") == top.has("node_betas_list"))
    top.refuse("write node_betas_list, or links and betas as matrices: one of the two");
  if (top.has("links")) {
    read_matrices(top, profile);
  } else {
    read_kinds(top, profile);
  }
  if (top.has("nics_per_node")) {
    profile.nics = static_cast<int>(top.integer("nics_per_node", {1, kMostGpusOfProfile}));
    if (profile.gpus % profile.nics != 0) {
      top.refuse(
          fmt::format("nics_per_node is {} for {} GPUs; equally many GPUs share a NIC, so write a divisor",
                      profile.nics, profile.gpus));
    }
    profile.remote_alpha = time_of(top, "remote_alpha", true);
    profile.remote_beta = time_of(top, "remote_beta", false);
  }
  return profile;
}

Topology topology_of(const NodeProfile& profile, const ProfileUse& use) {
  return ProfiledFabric(profile, use).build();
}

}  // namespace rondo
