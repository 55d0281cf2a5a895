#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "rondo/core/index.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/units.hpp"
#include "text.hpp"

namespace rondo::pictures {
namespace {

/// "a, b and c"; of more than eight the first six and how many more.
std::string list_words(const std::vector<std::string>& names) {
  const std::size_t shown = names.size() <= 8 ? names.size() : 6;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == names.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + names[i];
  }
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

std::string words_of(const ProvenSchedule& proven, const LatencyCertificate& latency) {
  const auto name = [&](GpuId g) { return node_label(proven.topology, proven.topology.node_of(g)); };
  return fmt::format(
      "Data of {} is wanted at {}. The links on the quickest path between them have a latency of {} us "
      "together, "
      "before a single byte is counted.",
      name(latency.source), name(latency.destination), short_number(proven.lower_bound->us));
}

std::string words_of(const ProvenSchedule& proven, const CutCertificate& cut) {
  const Topology& topology = proven.topology;
  const std::set<NodeId> inside(cut.nodes.begin(), cut.nodes.end());
  std::vector<std::string> within, without;
  for (std::size_t g = 0; g < topology.num_gpus(); ++g) {
    const NodeId node = topology.node_of(GpuId(g));
    (inside.contains(node) ? within : without).push_back(node_label(topology, node));
  }
  std::size_t links = 0;
  double bandwidth_GBps = 0;
  for (const Link& link : topology.links()) {
    if (!inside.contains(link.src) || inside.contains(link.dst)) continue;
    ++links;
    bandwidth_GBps += link.bandwidth_GBps;
  }
  const std::string path = without.size() < within.size()
                               ? fmt::format("{} {} to receive {} from outside", list_words(without),
                                             without.size() == 1 ? "has" : "have", format_size(cut.bytes))
                               : fmt::format("{} {} to send {} to the outside", list_words(within),
                                             within.size() == 1 ? "has" : "have", format_size(cut.bytes));
  const std::string leading =
      links == 1 ? fmt::format("One link of {} GB/s leads", short_number(bandwidth_GBps))
                 : fmt::format("{} links of {} GB/s together lead", links, short_number(bandwidth_GBps));
  return fmt::format("{}. {} there, which takes {} us; with the latency before, on and after it is {} us.",
                     path, leading, short_number(transmission_us(cut.bytes, bandwidth_GBps)),
                     short_number(proven.lower_bound->us));
}

std::string words_of(const ProvenSchedule& proven, const MetricCertificate& metric) {
  const Topology& topology = proven.topology;
  const double longest = *std::max_element(metric.length.begin(), metric.length.end());
  std::vector<std::string> scarce;
  for (std::size_t l = 0; l < metric.length.size(); ++l) {
    if (metric.length[l] > 0.5 * longest) scarce.push_back(link_label(topology, LinkId(l)));
  }
  return fmt::format(
      "Give each link the length that stands in the certificate. Every pair's bytes, times the shortest "
      "distance between the pair, have to be carried, and a link carries its bandwidth times its length; "
      "even "
      "with all links busy from the earliest moment that data can reach them, that takes {} us. What "
      "is scarce is the capacity of {}.",
      short_number(proven.lower_bound->us),
      scarce.size() == metric.length.size() ? "all links alike" : list_words(scarce));
}

std::string words_of(const ProvenSchedule& proven, const PartitionCertificate& partition) {
  const auto part_of = [&](NodeId n) { return partition.part[n.index()]; };
  const int sets = 1 + *std::max_element(partition.part.begin(), partition.part.end());
  std::size_t links = 0;
  double bandwidth_GBps = 0;
  for (const Link& link : proven.topology.links()) {
    if (part_of(link.src) == part_of(link.dst) || part_of(partition.enter ? link.dst : link.src) < 0)
      continue;
    ++links;
    bandwidth_GBps += link.bandwidth_GBps;
  }
  const double bytes = 2.0 * (sets - 1) * proven.demand.size_bytes();
  return fmt::format(
      "Divide the GPUs into {} sets as the certificate does. For each set to learn the sum of all, at least "
      "{} "
      "have to {} sets, {} times the buffer. {} of {} GB/s together lead {} them, which takes {} us; with "
      "the "
      "latency it is {} us.",
      sets, format_size(bytes), partition.enter ? "enter" : "leave", 2 * (sets - 1), count_of(links, "link"),
      short_number(bandwidth_GBps), partition.enter ? "into" : "out of",
      short_number(transmission_us(bytes, bandwidth_GBps)), short_number(proven.lower_bound->us));
}

std::string words_of(const ProvenSchedule& proven, const TimeCutCertificate& cut) {
  const std::string gpu = node_label(proven.topology, proven.topology.node_of(cut.gpu));
  const std::string mirrored =
      cut.backwards ? fmt::format(" (Here all of it with time run backwards: {} is the source.)", gpu) : "";
  const std::string counted =
      cut.sources.empty() ? ""
                          : fmt::format(
                                " (Here the contributions of {} are counted one by one, and each byte "
                                "as often as it may be the sum of some of them when it leaves.)",
                                count_of(cut.sources.size(), "GPU"));
  return fmt::format(
      "Call each node open from the time on that stands in the certificate: the sources at first, {} after "
      "{} us. "
      "Were {} served earlier, all that it wants of open sources would have reached it closed. On each link "
      "data can pass from open to closed only between the time its near end opens and the time its far end "
      "does, less the link's latency; all links together cannot take so much in that time.{}{}",
      gpu, short_number(proven.lower_bound->us), gpu, mirrored, counted);
}

std::string words_of(const ProvenSchedule& proven, const PricesCertificate& prices) {
  return fmt::format(
      "Let each byte pay, for every link it takes, the price that the link has when the byte leaves; the "
      "certificate gives prices for {}. Whatever way and times its bytes choose, to be there before {} us "
      "all data together have to pay as much as links that are never idle would earn by then.",
      count_of(prices.from_us.size(), "period"), short_number(proven.lower_bound->us));
}

std::string words_of(const ProvenSchedule& proven, const MessagePricesCertificate& messages) {
  std::string data = "all data";
  if (messages.gpu.valid()) {
    data = fmt::format("all that {} {}", node_label(proven.topology, proven.topology.node_of(messages.gpu)),
                       messages.backwards ? "has for others" : "wants");
  }
  return fmt::format(
      "Let each byte pay for every link that it takes, as long as the message that brings it keeps the link, "
      "what that costs then; the certificate gives prices for {}. A byte is at the next GPU once all of its "
      "message is. Whatever messages bring them, to be there before {} us the bytes of {} have to pay more "
      "than links that are never idle would earn by then.",
      count_of(messages.prices.from_us.size(), "period"), short_number(proven.lower_bound->us), data);
}

std::string words_of(const ProvenSchedule& proven, const JointCutsCertificate& joint) {
  std::set<GpuId> gpus;
  for (const WeightedTimeCut& cut : joint.cuts) gpus.insert(cut.gpu);
  return fmt::format(
      "For each of {} to have all it wants by {} us, data must pass in time from where it is at first to "
      "where "
      "it would be missing. A switch that does not copy passes each byte on to one place, so that the {} of "
      "the "
      "certificate share what links can carry by then; its prices, for {}, show that they need more.{}",
      count_of(gpus.size(), "GPU"), short_number(proven.lower_bound->us), count_of(joint.cuts.size(), "cut"),
      count_of(joint.prices.from_us.size(), "period"),
      joint.backwards ? " (Here all of it with time run backwards: the GPUs are sources.)" : "");
}

std::string words_of(const ProvenSchedule& proven, const KnowledgeCertificate& knowledge) {
  const std::string gpu = node_label(proven.topology, proven.topology.node_of(knowledge.gpu));
  const std::string mirrored =
      knowledge.backwards ? fmt::format(" (Here all of it with time run backwards: {} is the source.)", gpu)
                          : "";
  return fmt::format(
      "A message brings no more than its sender has when it starts, and on a link messages follow one "
      "another: what a GPU can have of the data of {} grows step by step. For {} times the certificate adds "
      "up the most that each can have by then; before {} us {} cannot have all.{}",
      count_of(knowledge.sources.size(), "GPU"), knowledge.times_us.size(),
      short_number(proven.lower_bound->us), gpu, mirrored);
}

}  // namespace

std::string title_words(const ProvenSchedule& proven) {
  std::string who = fmt::format(" over {} GPUs", proven.topology.num_gpus());
  if (!proven.demand.shape().is_plain()) who = describe(proven.demand.shape());
  return fmt::format("{} of {}{} of {}", to_string(proven.demand.collective()),
                     format_size(proven.demand.size_bytes()), who, printable(proven.topology.name()));
}

std::string result_words(const ProvenSchedule& proven) {
  const double finish = proven.schedule.finish_us;
  const auto bytes = proven.demand.uniform_chunk_bytes();
  std::string text =
      fmt::format("The schedule ends after {} us: an algorithm bandwidth of {:.4g} GB/s, with {}{} in {}.",
                  short_number(finish), algorithm_bandwidth_GBps(proven.demand.size_bytes(), finish),
                  count_of(proven.demand.num_chunks(), "chunk"), bytes ? " of " + format_size(*bytes) : "",
                  count_of(proven.schedule.sends.size(), "send"));
  if (!proven.lower_bound) return text + " No lower bound is known.";
  const double bound = proven.lower_bound->us;
  if (times_equal(finish, bound)) return text + " No schedule can end earlier.";
  return text +
         fmt::format(" No schedule can end before {} us, so it takes at most {:.2g} % longer than the best.",
                     short_number(bound), 100 * (finish / bound - 1));
}

std::string send_label(const ProvenSchedule& proven, const SumFacts& sums, int s) {
  const Send& send = proven.schedule.sends[index(s)];
  const Contribution& contribution = proven.demand.contribution(send.chunk);
  if (!contribution.reduce) {
    return fmt::format("chunk {} of {}", send.chunk.value,
                       node_label(proven.topology, proven.topology.node_of(contribution.origin)));
  }
  const int all = static_cast<int>(contribution.sources.size());
  const std::string what = sums.sources[index(s)] == all
                               ? "the whole sum"
                               : fmt::format("the sum of {} of {}", sums.sources[index(s)], all);
  return fmt::format("chunk {}, {}{}", send.chunk.value, what, sums.adds[index(s)] ? ", which is added" : "");
}

std::string certificate_words(const ProvenSchedule& proven) {
  if (!proven.lower_bound) return "";
  return std::visit([&](const auto& certificate) { return words_of(proven, certificate); },
                    proven.lower_bound->certificate);
}

}  // namespace rondo::pictures
