#include "replaying.hpp"

#include "rondo/core/error.hpp"
#include "rondo/core/retiming.hpp"
#include "rondo/core/version.hpp"
#include "rondo/parallel/communicator.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/pipeline/kept_schedule.hpp"

namespace rondo::catalogue {
namespace {

/// Its own times are the best it knows: in the same order others may end a rounding later.
bool is_at_home(const ProvenSchedule& kept, const Topology& topology, double size_bytes) {
  return kept.demand.size_bytes() == size_bytes && fingerprint(kept.topology) == fingerprint(topology);
}

}  // namespace

Replayed replayed_at(const std::string& name, const ProvenSchedule& kept, const Topology& topology,
                     double size_bytes) {
  Replayed result{name};
  try {
    result.why_not = missing_link(kept, topology, matching_links(kept.topology, topology));
    result.is_link_gone = !result.why_not.empty();
    if (result.is_link_gone) return result;
    Demand demand = kept.demand.with_size(size_bytes);
    Schedule schedule =
        is_at_home(kept, topology, size_bytes) ? kept.schedule : replayed_elsewhere(kept, topology, demand);
    result.schedule = {topology, std::move(demand), std::move(schedule), std::nullopt, producer()};
  } catch (const Error& error) {
    // Other nodes, or an order that does not work there: there are other schedules.
    if (error.code() != ExitCode::unavailable && error.code() != ExitCode::bad_data) throw;
    result.why_not = error.what();
  }
  return result;
}

Bounds bounds_at(const std::shared_ptr<const Topology>& topology, const Demand& demand) {
  const auto alone = make_local_communicator();
  return rondo::bound({topology, demand}, {*alone});
}

std::optional<LowerBound> bound_by(const Certificate& certificate, double its_size_bytes,
                                   const Topology& topology, const Demand& demand) {
  Certificate here = certificate;
  if (auto* cut = std::get_if<CutCertificate>(&here)) cut->bytes *= demand.size_bytes() / its_size_bytes;
  try {
    const double us = sound_bound_of(topology, demand, here);
    return LowerBound{us, std::move(here)};
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_data) throw;
    return std::nullopt;
  }
}

bool is_earlier(double finish_us, double than_us) {
  constexpr double kRounding = 1e-9;
  return finish_us < than_us * (1 - kRounding);
}

}  // namespace rondo::catalogue
