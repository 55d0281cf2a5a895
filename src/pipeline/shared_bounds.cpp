#include "shared_bounds.hpp"

#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "rondo/parallel/map_parts.hpp"
#include "rondo/parallel/messages.hpp"
#include "time_shares.hpp"

namespace rondo {

auto members_of(SameAs<CutCertificate> auto& c) {
  return std::tie(c.nodes, c.bytes);
}
auto members_of(SameAs<MetricDatum> auto& c) {
  return std::tie(c.source, c.destinations);
}
auto members_of(SameAs<MetricCertificate> auto& c) {
  return std::tie(c.length, c.from_us, c.data, c.shares);
}
auto members_of(SameAs<PartitionCertificate> auto& c) {
  return std::tie(c.part, c.enter);
}
auto members_of(SameAs<TimeCutCertificate> auto& c) {
  return std::tie(c.gpu, c.alpha_us, c.backwards, c.sources);
}
auto members_of(SameAs<PricesCertificate> auto& c) {
  return std::tie(c.from_us, c.until_us, c.place, c.price);
}
auto members_of(SameAs<KnowledgeCertificate> auto& c) {
  return std::tie(c.gpu, c.sources, c.sets, c.times_us, c.backwards);
}
auto members_of(SameAs<WeightedTimeCut> auto& c) {
  return std::tie(c.gpu, c.weight, c.alpha_us);
}
auto members_of(SameAs<JointCutsCertificate> auto& c) {
  return std::tie(c.prices, c.cuts, c.backwards);
}
auto members_of(SameAs<MessagePricesCertificate> auto& c) {
  return std::tie(c.prices, c.parts, c.gpu, c.backwards);
}

namespace {

void write(MessageWriter& message, const LowerBound& bound) {
  message.put(bound.us);
  message.put(bound.certificate.index());
  std::visit([&](const auto& certificate) { message.write(certificate); }, bound.certificate);
}

LowerBound read(MessageReader& message) {
  LowerBound bound{message.get<double>(), {}};
  switch (message.get<std::size_t>()) {
    case 0:
      message.read(bound.certificate.emplace<0>());
      break;
    case 1:
      message.read(bound.certificate.emplace<1>());
      break;
    case 2:
      message.read(bound.certificate.emplace<2>());
      break;
    case 3:
      message.read(bound.certificate.emplace<3>());
      break;
    case 4:
      message.read(bound.certificate.emplace<4>());
      break;
    case 5:
      message.read(bound.certificate.emplace<5>());
      break;
    case 6:
      message.read(bound.certificate.emplace<6>());
      break;
    case 7:
      message.read(bound.certificate.emplace<7>());
      break;
    default:
      message.read(bound.certificate.emplace<8>());
  }
  return bound;
}

Bytes pack(const std::vector<const LowerBound*>& bounds) {
  MessageWriter message;
  message.put(bounds.size());
  for (const LowerBound* bound : bounds) write(message, *bound);
  return message.take();
}

std::vector<LowerBound> unpack(const Bytes& bytes) {
  MessageReader message(bytes);
  std::vector<LowerBound> bounds(message.get<std::size_t>());
  for (LowerBound& bound : bounds) bound = read(message);
  return bounds;
}

void share_bounds(Bounds& bounds, const Communicator& communicator) {
  const Bytes best = on_root(communicator, [&] { return pack(bounds.best_of_each_kind()); });
  if (!communicator.is_root()) bounds.all = unpack(best);
  const bool has_flow = bounds.steady->field.has_value();
  if (communicator.max(has_flow ? 0 : 1) == 0 || !has_flow) return;
  auto steady = std::make_shared<SteadyFlow>(*bounds.steady);
  steady->field.reset();
  steady->why_not = "a limit came before every rank had solved the steady-state flow";
  bounds.steady = std::move(steady);
}

}  // namespace

Bounds shared_bounds(const Problem& problem, const Toolbox& tools, const RunContext& context) {
  SolveLimits limits = limits_of_step(problem.options, context, kShareOfBounds);
  limits.interrupt = nullptr;  // signals reach some ranks earlier than others
  Bounds bounds = lower_bounds(problem.instance(), tools, problem.options.symmetry, limits);
  if (problem.options.time_limit_s) share_bounds(bounds, context.communicator);
  const LowerBound& best = bounds.best();
  context.tell(fmt::format("lower bound {:.6g} us ({})", best.us, certificate_kind(best.certificate)));
  return bounds;
}

}  // namespace rondo
