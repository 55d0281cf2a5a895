#include "list_rules.hpp"

#include "policy_table.hpp"
#include "rondo/core/units.hpp"
#include "rondo/engines/engines.hpp"

namespace rondo {
namespace {

struct ListPolicy {
  std::string name;
  ListRules rules;
};

const std::vector<ListPolicy>& list_policy_table() {
  static const std::vector<ListPolicy> table{
      {"rarest", {ChunkOrder::rarest, SenderOrder::best_chunk}},
      {"rarest-full", {ChunkOrder::rarest, SenderOrder::fullest}},
      {"rarest-far-full", {ChunkOrder::rarest, SenderOrder::fullest, true}},
      {"furthest", {ChunkOrder::furthest, SenderOrder::best_chunk}},
      {"soonest", {ChunkOrder::furthest, SenderOrder::best_chunk, false, true}},
      {"furthest-full", {ChunkOrder::furthest, SenderOrder::fullest}},
      {"rarest-fitting", {ChunkOrder::rarest, SenderOrder::best_chunk, false, false, true}},
      {"soonest-fitting", {ChunkOrder::furthest, SenderOrder::best_chunk, false, true, true}},
      {"rarest-joined", {ChunkOrder::rarest, SenderOrder::best_chunk, false, false, false, true}},
      {"furthest-joined", {ChunkOrder::furthest, SenderOrder::best_chunk, false, false, false, true}},
      {"soonest-joined", {ChunkOrder::furthest, SenderOrder::best_chunk, false, true, false, true}},
      {"pairwise-joined", {ChunkOrder::furthest, SenderOrder::fullest, false, true, false, true, true}},
  };
  return table;
}

const std::vector<ListPolicy>& queue_policy_table() {
  static const std::vector<ListPolicy> table{
      {"rarest", {ChunkOrder::rarest, SenderOrder::best_chunk}},
      {"furthest-scarce", {ChunkOrder::furthest, SenderOrder::scarcest}},
      {"rarest-full", {ChunkOrder::rarest, SenderOrder::fullest}},
      {"rarest-scarce", {ChunkOrder::rarest, SenderOrder::scarcest}},
      {"furthest", {ChunkOrder::furthest, SenderOrder::best_chunk}},
      {"furthest-fit", {ChunkOrder::furthest, SenderOrder::fitting}},
      {"nearest", {ChunkOrder::nearest, SenderOrder::best_chunk}},
      {"oldest-full", {ChunkOrder::oldest, SenderOrder::fullest}},
      {"oldest-scarce", {ChunkOrder::oldest, SenderOrder::scarcest}},
  };
  return table;
}

}  // namespace

const std::vector<std::string>& list_policies() {
  static const std::vector<std::string> names = names_of(list_policy_table());
  return names;
}

const std::vector<std::string>& queue_policies() {
  static const std::vector<std::string> names = names_of(queue_policy_table());
  return names;
}

ListRules list_rules(const std::string& policy, std::uint64_t seed) {
  ListRules rules = find_policy(list_policy_table(), policy, "list").rules;
  rules.seed = seed;
  return rules;
}

std::vector<std::string> list_policies_of_models() {
  std::vector<std::string> names;
  for (const ListPolicy& policy : list_policy_table()) {
    if (!policy.rules.fitting_rates && !policy.rules.joined) names.push_back(policy.name);
  }
  return names;
}

ListRules queue_rules(const std::string& policy, std::uint64_t seed) {
  ListRules rules = find_policy(queue_policy_table(), policy, "queue").rules;
  rules.seed = seed;
  return rules;
}

bool goes_first(const Choice& a, const Choice& b, SenderOrder senders) {
  if (a.fallback != b.fallback) return b.fallback;
  if (senders == SenderOrder::fullest && a.alternatives != b.alternatives)
    return a.alternatives > b.alternatives;
  if (senders == SenderOrder::scarcest && a.alternatives != b.alternatives)
    return a.alternatives < b.alternatives;
  return a.key < b.key;
}

double goodput_into_GBps(const Topology& topology, GpuId gpu, double bytes) {
  double sum = 0;
  for (const LinkId l : topology.in_links(topology.node_of(gpu))) {
    const Link& link = topology.link(l);
    const double of_messages = link.message_us * link.bandwidth_GBps;
    sum += link.bandwidth_GBps / (1 + of_messages / transmission_us(bytes, 1));
  }
  return sum;
}

bool others_are_busy_longer(const Hop& hop, double bytes, double in_GBps, double lacking_bytes) {
  const double own = hop.links.back().goodput_GBps(bytes);
  const double others = in_GBps - own;
  return others <= 1e-9 * own || transmission_us(lacking_bytes, others) >= hop.duration_us(bytes);
}

}  // namespace rondo
