#include "format_version.hpp"

#include <algorithm>
#include <variant>

namespace rondo {
namespace {

int version_if(bool is_newest) {
  return is_newest ? kNewestVersion : 1;
}

bool have_news(const std::vector<Send>& sends) {
  return have_transfers(sends) || have_rates(sends) ||
         std::ranges::any_of(sends, [](const Send& send) { return send.op == SendOp::reduce; });
}

bool is_news(const Certificate& certificate) {
  const auto* metric = std::get_if<MetricCertificate>(&certificate);
  return (metric != nullptr && !metric->from_us.empty()) ||
         std::holds_alternative<PartitionCertificate>(certificate) ||
         std::holds_alternative<TimeCutCertificate>(certificate) ||
         std::holds_alternative<PricesCertificate>(certificate) ||
         std::holds_alternative<KnowledgeCertificate>(certificate) ||
         std::holds_alternative<JointCutsCertificate>(certificate) ||
         std::holds_alternative<MessagePricesCertificate>(certificate);
}

}  // namespace

int version_of(const Topology& topology) {
  return version_if(topology.has_message_costs() || topology.has_bandwidth_steps() ||
                    topology.has_adding_switches() || topology.limits_relay_memory());
}

int version_of(const Demand& demand) {
  return version_if(demand.has_several_sources() || !demand.shape().is_plain() || have_tenants(demand));
}

int version_of(const ProvenSchedule& proven) {
  const auto& bound = proven.lower_bound;
  return version_if(version_of(proven.topology) == kNewestVersion ||
                    version_of(proven.demand) == kNewestVersion || have_news(proven.schedule.sends) ||
                    (bound && is_news(bound->certificate)));
}

int version_of(const RoundRecord& record) {
  return version_if(have_news(record.sends) || (record.plan && have_news(*record.plan)));
}

bool have_tenants(const Demand& demand) {
  return std::ranges::any_of(demand.contributions(),
                             [](const Contribution& c) { return c.tenant != 0 || c.priority != 1; });
}

bool have_transfers(const std::vector<Send>& sends) {
  return std::ranges::any_of(sends, [](const Send& send) { return send.transfer != kNoTransfer; });
}

bool have_rates(const std::vector<Send>& sends) {
  return std::ranges::any_of(sends, [](const Send& send) { return send.has_rate(); });
}

}  // namespace rondo
