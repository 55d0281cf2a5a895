#include "rondo/core/subfabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "refuse.hpp"
#include "rondo/core/error.hpp"

namespace rondo {
namespace {

GpuId place_in(const std::vector<GpuId>& members, GpuId gpu) {
  const auto at = std::ranges::lower_bound(members, gpu);
  if (at == members.end() || *at != gpu)
    refuse(
        fmt::format("GPU {} is not in the group {}; name one of its members", gpu.value, to_string(members)));
  return GpuId(static_cast<std::size_t>(at - members.begin()));
}

void check_range(const char* what, std::size_t number, std::size_t all) {
  if (number != all)
    refuse(fmt::format("certificate: there are {} {}; the fabric has {}", number, what, all));
}

}  // namespace

std::vector<char> forbidden_nodes(const Topology& topology, const Demand& demand) {
  std::vector<char> forbidden(topology.num_nodes(), 0);
  if (!demand.forbids_relays()) return forbidden;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    if (!std::ranges::binary_search(demand.shape().group, GpuId(g)))
      forbidden[topology.node_of(GpuId(g)).index()] = 1;
  }
  return forbidden;
}

Subfabric::Subfabric(const Topology& whole, const Demand& demand)
    : members_(demand.members()), topology_(restricted(whole, demand)) {}

Topology Subfabric::restricted(const Topology& whole, const Demand& demand) {
  if (!demand.forbids_relays())
    throw Error(ExitCode::internal, "the part of a fabric was asked for where all of it may be used");
  const std::vector<char> forbidden = forbidden_nodes(whole, demand);
  const auto stays = [&](const Link& link) {
    return !forbidden[link.src.index()] && !forbidden[link.dst.index()];
  };
  std::vector<char> used(whole.num_nodes(), 0);
  for (const Link& link : whole.links()) {
    if (stays(link)) used[link.src.index()] = used[link.dst.index()] = 1;
  }
  for (const GpuId g : members_) used[whole.node_of(g).index()] = 1;

  TopologyData data = whole.data();
  data.nodes.clear();
  data.links.clear();
  node_inside_.resize(whole.num_nodes());
  link_inside_.resize(whole.num_links());
  for (std::size_t n = 0; n < whole.num_nodes(); ++n) {
    if (!used[n]) continue;
    node_inside_[n] = NodeId(node_outside_.size());
    node_outside_.emplace_back(n);
    data.nodes.push_back(whole.nodes()[n]);
  }
  for (std::size_t l = 0; l < whole.num_links(); ++l) {
    Link link = whole.links()[l];
    if (!stays(link)) continue;
    link.src = node_inside_[link.src.index()];
    link.dst = node_inside_[link.dst.index()];
    link_inside_[l] = LinkId(link_outside_.size());
    link_outside_.emplace_back(l);
    data.links.push_back(std::move(link));
  }
  groups_of_whole_ = data.shared_bandwidth.size();
  for (std::size_t i = 0; i < groups_of_whole_; ++i) {
    SharedBandwidth& group = data.shared_bandwidth[i];
    for (LinkId& l : group.links) l = link_inside_[l.index()];
    std::erase_if(group.links, [](LinkId l) { return !l.valid(); });
    if (!group.links.empty()) group_outside_.push_back(i);
  }
  std::erase_if(data.shared_bandwidth, [](const SharedBandwidth& group) { return group.links.empty(); });
  return Topology(std::move(data));
}

Demand Subfabric::demand_of(const Demand& demand) const {
  std::vector<Contribution> all = demand.contributions();
  const auto renumber = [&](std::vector<GpuId>& gpus) {
    for (GpuId& g : gpus) g = place_in(members_, g);
  };
  for (Contribution& c : all) {
    c.origin = place_in(members_, c.origin);
    renumber(c.destinations);
    renumber(c.sources);
    for (HeldSum& held : c.held) {
      held.gpu = place_in(members_, held.gpu);
      renumber(held.sources);
    }
  }
  return Demand(demand.collective(), demand.size_bytes(), members_.size(), std::move(all),
                demand.chunks_per_contribution(), {.counts = demand.shape().counts});
}

Certificate Subfabric::certificate_inside(const Certificate& certificate) const {
  if (const auto* pair = std::get_if<LatencyCertificate>(&certificate)) {
    return LatencyCertificate{.source = place_in(members_, pair->source),
                              .destination = place_in(members_, pair->destination)};
  }
  if (const auto* cut = std::get_if<CutCertificate>(&certificate)) {
    return CutCertificate{.nodes = nodes_inside(cut->nodes), .bytes = cut->bytes};
  }
  if (const auto* metric = std::get_if<MetricCertificate>(&certificate)) {
    const std::size_t periods = std::max<std::size_t>(1, metric->from_us.size());
    check_range("lengths", metric->length.size(), periods * link_inside_.size());
    MetricCertificate inside{.length = {}, .from_us = metric->from_us, .data = metric->data, .shares = {}};
    for (std::size_t p = 0; p < periods; ++p) {
      for (const LinkId l : link_outside_)
        inside.length.push_back(metric->length[p * link_inside_.size() + l.index()]);
    }
    for (MetricDatum& datum : inside.data) {
      datum.source = place_in(members_, datum.source);
      for (GpuId& d : datum.destinations) d = place_in(members_, d);
    }
    for (MetricShare share : metric->shares) {
      const auto place = static_cast<std::size_t>(share.place);
      if (share.place < 0 || place >= metric->length.size())
        refuse(fmt::format("certificate: there is no length {}", share.place));
      const LinkId link = link_inside_[place % link_inside_.size()];
      if (!link.valid()) continue;
      share.destination = place_in(members_, share.destination);
      share.place =
          static_cast<std::int32_t>(place / link_inside_.size() * link_outside_.size() + link.index());
      inside.shares.push_back(share);
    }
    return inside;
  }
  if (const auto* time_cut = std::get_if<TimeCutCertificate>(&certificate)) {
    TimeCutCertificate inside{.gpu = place_in(members_, time_cut->gpu),
                              .alpha_us = times_inside(time_cut->alpha_us),
                              .backwards = time_cut->backwards};
    for (const GpuId g : time_cut->sources) inside.sources.push_back(place_in(members_, g));
    return inside;
  }
  if (const auto* prices = std::get_if<PricesCertificate>(&certificate)) return prices_inside(*prices);
  if (const auto* joint = std::get_if<JointCutsCertificate>(&certificate)) {
    JointCutsCertificate inside{
        .prices = prices_inside(joint->prices), .cuts = {}, .backwards = joint->backwards};
    for (const WeightedTimeCut& cut : joint->cuts)
      inside.cuts.push_back({place_in(members_, cut.gpu), cut.weight, times_inside(cut.alpha_us)});
    return inside;
  }
  if (const auto* messages = std::get_if<MessagePricesCertificate>(&certificate)) {
    MessagePricesCertificate inside = *messages;
    inside.prices = prices_inside(messages->prices);
    if (inside.gpu.valid()) inside.gpu = place_in(members_, messages->gpu);
    return inside;
  }
  if (const auto* knowledge = std::get_if<KnowledgeCertificate>(&certificate))
    return knowledge_inside(*knowledge);
  const auto& partition = std::get<PartitionCertificate>(certificate);
  check_range("nodes", partition.part.size(), node_inside_.size());
  PartitionCertificate inside{.part = {}, .enter = partition.enter};
  for (const NodeId n : node_outside_) inside.part.push_back(partition.part[n.index()]);
  return inside;
}

Certificate Subfabric::certificate_of_whole(const Certificate& certificate) const {
  if (const auto* pair = std::get_if<LatencyCertificate>(&certificate)) {
    return LatencyCertificate{.source = members_[pair->source.index()],
                              .destination = members_[pair->destination.index()]};
  }
  if (const auto* cut = std::get_if<CutCertificate>(&certificate)) {
    CutCertificate whole{.nodes = {}, .bytes = cut->bytes};
    for (const NodeId n : cut->nodes) whole.nodes.push_back(node_outside_[n.index()]);
    return whole;
  }
  if (const auto* metric = std::get_if<MetricCertificate>(&certificate)) {
    const std::size_t periods = std::max<std::size_t>(1, metric->from_us.size());
    MetricCertificate whole{.length = std::vector<double>(periods * link_inside_.size(), 0.0),
                            .from_us = metric->from_us,
                            .data = metric->data,
                            .shares = metric->shares};
    const auto place_outside = [&](std::size_t place) {
      return place / link_outside_.size() * link_inside_.size() +
             link_outside_[place % link_outside_.size()].index();
    };
    for (std::size_t place = 0; place < metric->length.size(); ++place)
      whole.length[place_outside(place)] = metric->length[place];
    for (MetricDatum& datum : whole.data) {
      datum.source = members_[datum.source.index()];
      for (GpuId& d : datum.destinations) d = members_[d.index()];
    }
    for (MetricShare& share : whole.shares) {
      share.destination = members_[share.destination.index()];
      share.place = static_cast<std::int32_t>(place_outside(static_cast<std::size_t>(share.place)));
    }
    return whole;
  }
  if (const auto* time_cut = std::get_if<TimeCutCertificate>(&certificate)) {
    TimeCutCertificate whole{.gpu = members_[time_cut->gpu.index()],
                             .alpha_us = times_of_whole(time_cut->alpha_us),
                             .backwards = time_cut->backwards};
    for (const GpuId g : time_cut->sources) whole.sources.push_back(members_[g.index()]);
    return whole;
  }
  if (const auto* prices = std::get_if<PricesCertificate>(&certificate)) return prices_of_whole(*prices);
  if (const auto* joint = std::get_if<JointCutsCertificate>(&certificate)) {
    JointCutsCertificate whole{
        .prices = prices_of_whole(joint->prices), .cuts = joint->cuts, .backwards = joint->backwards};
    for (WeightedTimeCut& cut : whole.cuts) {
      cut.gpu = members_[cut.gpu.index()];
      cut.alpha_us = times_of_whole(cut.alpha_us);
    }
    return whole;
  }
  if (const auto* messages = std::get_if<MessagePricesCertificate>(&certificate)) {
    MessagePricesCertificate whole = *messages;
    whole.prices = prices_of_whole(messages->prices);
    if (whole.gpu.valid()) whole.gpu = members_[messages->gpu.index()];
    return whole;
  }
  if (const auto* knowledge = std::get_if<KnowledgeCertificate>(&certificate)) {
    KnowledgeCertificate whole = *knowledge;
    whole.gpu = members_[knowledge->gpu.index()];
    for (GpuId& g : whole.sources) g = members_[g.index()];
    for (std::vector<NodeId>& set : whole.sets) {
      for (NodeId& n : set) n = node_outside_[n.index()];
    }
    return whole;
  }
  const auto& partition = std::get<PartitionCertificate>(certificate);
  PartitionCertificate whole{.part = std::vector<int>(node_inside_.size(), -1), .enter = partition.enter};
  for (std::size_t n = 0; n < node_outside_.size(); ++n)
    whole.part[node_outside_[n].index()] = partition.part[n];
  return whole;
}

std::vector<double> Subfabric::times_inside(const std::vector<double>& alpha_us) const {
  check_range("times", alpha_us.size(), node_inside_.size());
  std::vector<double> inside_us;
  for (const NodeId n : node_outside_) inside_us.push_back(alpha_us[n.index()]);
  return inside_us;
}

std::vector<double> Subfabric::times_of_whole(const std::vector<double>& alpha_us) const {
  std::vector<double> whole_us(node_inside_.size(), 0.0);
  for (std::size_t n = 0; n < node_outside_.size(); ++n) whole_us[node_outside_[n].index()] = alpha_us[n];
  return whole_us;
}

std::vector<NodeId> Subfabric::nodes_inside(const std::vector<NodeId>& nodes) const {
  std::vector<NodeId> inside;
  for (const NodeId n : nodes) {
    if (!n.valid() || n.index() >= node_inside_.size())
      refuse(fmt::format("certificate: node {} does not exist", n.value));
    if (node_inside_[n.index()].valid()) inside.push_back(node_inside_[n.index()]);
  }
  return inside;
}

/// A set of which nothing is there has nothing; it is left out.
KnowledgeCertificate Subfabric::knowledge_inside(const KnowledgeCertificate& knowledge) const {
  KnowledgeCertificate inside{.gpu = place_in(members_, knowledge.gpu),
                              .sources = knowledge.sources,
                              .sets = {},
                              .times_us = knowledge.times_us,
                              .backwards = knowledge.backwards};
  for (GpuId& g : inside.sources) g = place_in(members_, g);
  for (const std::vector<NodeId>& set : knowledge.sets) {
    std::vector<NodeId> left = nodes_inside(set);
    if (!left.empty()) inside.sets.push_back(std::move(left));
  }
  return inside;
}

PricesCertificate Subfabric::prices_inside(const PricesCertificate& prices) const {
  check_range("prices", prices.price.size(), prices.place.size());
  const std::size_t rows = link_inside_.size() + groups_of_whole_;
  const std::size_t rows_inside = link_outside_.size() + group_outside_.size();
  PricesCertificate inside{.from_us = prices.from_us, .until_us = prices.until_us, .place = {}, .price = {}};
  for (std::size_t i = 0; i < prices.place.size(); ++i) {
    if (prices.place[i] < 0)
      refuse(fmt::format("certificate: there is no place {} of prices", prices.place[i]));
    const auto place = static_cast<std::size_t>(prices.place[i]);
    std::size_t row = place % rows;
    if (row < link_inside_.size()) {
      if (!link_inside_[row].valid()) continue;
      row = link_inside_[row].index();
    } else {
      const auto group = std::ranges::lower_bound(group_outside_, row - link_inside_.size());
      if (group == group_outside_.end() || *group != row - link_inside_.size()) continue;
      row = link_outside_.size() + static_cast<std::size_t>(group - group_outside_.begin());
    }
    inside.place.push_back(static_cast<std::int32_t>(place / rows * rows_inside + row));
    inside.price.push_back(prices.price[i]);
  }
  return inside;
}

PricesCertificate Subfabric::prices_of_whole(const PricesCertificate& prices) const {
  const std::size_t rows = link_inside_.size() + groups_of_whole_;
  const std::size_t rows_inside = link_outside_.size() + group_outside_.size();
  PricesCertificate whole = prices;
  for (std::int32_t& place : whole.place) {
    const auto period = static_cast<std::size_t>(place) / rows_inside;
    const auto row = static_cast<std::size_t>(place) % rows_inside;
    const std::size_t outside = row < link_outside_.size()
                                    ? link_outside_[row].index()
                                    : link_inside_.size() + group_outside_[row - link_outside_.size()];
    place = static_cast<std::int32_t>(period * rows + outside);
  }
  return whole;
}

std::vector<Send> Subfabric::sends_of_whole(std::vector<Send> sends) const {
  for (Send& send : sends) send.link = link_outside_[send.link.index()];
  return sends;
}

std::vector<Send> Subfabric::sends_inside(std::vector<Send> sends) const {
  for (Send& send : sends) {
    const LinkId inside = link_inside_[send.link.index()];
    if (!inside.valid()) {
      refuse(fmt::format("chunk {} goes over link {}, which leads from or to a GPU outside the group {}",
                         send.chunk.value, send.link.value, to_string(members_)));
    }
    send.link = inside;
  }
  return sends;
}

ProvenSchedule inside_group(const ProvenSchedule& proven) {
  const Subfabric part(proven.topology, proven.demand);
  ProvenSchedule inside{.topology = part.topology(),
                        .demand = part.demand_of(proven.demand),
                        .schedule = {part.sends_inside(proven.schedule.sends), proven.schedule.finish_us},
                        .producer = proven.producer};
  if (const auto& bound = proven.lower_bound)
    inside.lower_bound = LowerBound{bound->us, part.certificate_inside(bound->certificate)};
  return inside;
}

}  // namespace rondo
