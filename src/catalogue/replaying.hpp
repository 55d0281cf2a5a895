#pragma once

#include <memory>
#include <string>

#include "rondo/bounds/bounds.hpp"
#include "rondo/catalogue/entry.hpp"
#include "rondo/core/schedule.hpp"

namespace rondo::catalogue {

/// A kept schedule at another size, perhaps on another fabric.
struct Replayed {
  std::string name;                                       ///< of the kept schedule's file
  std::optional<ProvenSchedule> schedule = std::nullopt;  ///< without a bound; none where it does not work
  std::string why_not = {};
  bool is_link_gone = false;

  double finish_us() const {
    return schedule ? schedule->schedule.finish_us : std::numeric_limits<double>::infinity();
  }
};

/// Timed anew and replayed in full.
Replayed replayed_at(const std::string& name, const ProvenSchedule& kept, const Topology& topology,
                     double size_bytes);

/// Lower bounds of a series at a size; this rank alone.
Bounds bounds_at(const std::shared_ptr<const Topology>& topology, const Demand& demand);

/// What the certificate of the bound at another size proves at this one; nothing where it does not hold here.
std::optional<LowerBound> bound_by(const Certificate& certificate, double its_size_bytes,
                                   const Topology& topology, const Demand& demand);

/// By more than rounding.
bool is_earlier(double finish_us, double than_us);

}  // namespace rondo::catalogue
