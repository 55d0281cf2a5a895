#include "replaying.hpp"

#include <algorithm>
#include <limits>

#include "rondo/core/retiming.hpp"
#include "rondo/core/version.hpp"
#include "rondo/parallel/communicator.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/pipeline/kept_schedule.hpp"

namespace rondo::catalogue {
namespace {

/// Of the schedules that a rank has ready for replays, together: some 1.2 GB.
constexpr std::size_t kSendsReady = 4'000'000;

/// Its own times are the best it knows: in the same order others may end a rounding later.
bool is_at_home(const ProvenSchedule& kept, const Topology& topology, double size_bytes) {
  return kept.demand.size_bytes() == size_bytes && fingerprint(kept.topology) == fingerprint(topology);
}

}  // namespace

bool is_refusal(const Error& error) {
  return error.code() == ExitCode::unavailable || error.code() == ExitCode::bad_data;
}

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
    if (!is_refusal(error)) throw;
    result.why_not = error.what();
  }
  return result;
}

/// One schedule on one fabric.
struct Replays::Kept {
  std::shared_ptr<const ProvenSchedule> schedule;
  std::shared_ptr<const Topology> topology;
  bool is_its_own = false;                                  ///< it was made for this fabric
  std::optional<ReplayElsewhere> elsewhere = std::nullopt;  ///< none: it does not work there at all
  std::uint64_t last_use = 0;                               ///< Replays::uses_ then

  bool is_at_home(const Demand& demand) const {
    return is_its_own && schedule->demand.size_bytes() == demand.size_bytes();
  }

  /// Nothing where it does not work.
  std::optional<Schedule> timed(const Demand& demand) {
    if (is_at_home(demand)) return schedule->schedule;
    if (!elsewhere) return std::nullopt;
    try {
      return elsewhere->at(demand);
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
      return std::nullopt;
    }
  }

  double guess_us(const Demand& demand) {
    if (is_at_home(demand)) return schedule->schedule.finish_us;
    return elsewhere ? elsewhere->guess_us(demand) : std::numeric_limits<double>::infinity();
  }
};

Replays::Replays(const Folder& folder) : folder_(folder) {}
Replays::~Replays() = default;

/// Null where it is too large to be kept.
Replays::Kept* Replays::kept(const std::string& name, const std::string& fabric,
                             const std::shared_ptr<const Topology>& topology) {
  const std::pair key(name, fabric);
  ++uses_;
  if (const auto there = kept_.find(key); there != kept_.end()) {
    there->second.last_use = uses_;
    return &there->second;
  }
  Kept fresh{.schedule = folder_.schedule(name), .topology = topology, .last_use = uses_};
  const auto sends_of = [](const Kept& ready) { return ready.schedule->schedule.sends.size(); };
  std::size_t sends = sends_of(fresh);
  if (sends > kSendsReady) return nullptr;
  for (const auto& [other, ready] : kept_) sends += sends_of(ready);
  while (sends > kSendsReady) {
    const auto oldest =
        std::ranges::min_element(kept_, {}, [](const auto& named) { return named.second.last_use; });
    sends -= sends_of(oldest->second);
    kept_.erase(oldest);
  }
  fresh.is_its_own = fingerprint(fresh.schedule->topology) == fabric;
  try {
    fresh.elsewhere.emplace(*fresh.schedule, *topology, fresh.schedule->demand);
  } catch (const Error& error) {
    if (!is_refusal(error)) throw;
  }
  return &kept_.emplace(key, std::move(fresh)).first->second;
}

Replayed Replays::at(const std::string& name, const std::string& fabric,
                     const std::shared_ptr<const Topology>& topology, double size_bytes) {
  Kept* const ready = kept(name, fabric, topology);
  if (ready == nullptr) return replayed_at(name, *folder_.schedule(name), *topology, size_bytes);
  Replayed result{name};
  Demand demand = ready->schedule->demand.with_size(size_bytes);
  if (std::optional<Schedule> schedule = ready->timed(demand))
    result.schedule = {*topology, std::move(demand), *std::move(schedule), std::nullopt, producer()};
  return result;
}

double Replays::finish_us(const std::string& name, const std::string& fabric,
                          const std::shared_ptr<const Topology>& topology, double size_bytes) {
  Kept* const ready = kept(name, fabric, topology);
  if (ready == nullptr) return replayed_at(name, *folder_.schedule(name), *topology, size_bytes).finish_us();
  const auto schedule = ready->timed(ready->schedule->demand.with_size(size_bytes));
  return schedule ? schedule->finish_us : std::numeric_limits<double>::infinity();
}

double Replays::guess_us(const std::string& name, const std::string& fabric,
                         const std::shared_ptr<const Topology>& topology, double size_bytes) {
  Kept* const ready = kept(name, fabric, topology);
  if (ready == nullptr) return finish_us(name, fabric, topology, size_bytes);
  return ready->guess_us(ready->schedule->demand.with_size(size_bytes));
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
