#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rondo/bounds/bounds.hpp"
#include "rondo/catalogue/entry.hpp"
#include "rondo/catalogue/folder.hpp"
#include "rondo/core/error.hpp"
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

/// Whether a schedule is refused for other nodes, a link that is gone or an order that does not work there:
/// there are other schedules.
bool is_refusal(const Error& error);

/// Timed anew and replayed in full.
Replayed replayed_at(const std::string& name, const ProvenSchedule& kept, const Topology& topology,
                     double size_bytes);

/// replayed_at() of a folder's schedules at several sizes: of those used last, what does not depend on the
/// size is kept. `fabric`: fingerprint of the topology.
class Replays {
 public:
  explicit Replays(const Folder& folder);
  ~Replays();

  /// Without saying why not.
  Replayed at(const std::string& name, const std::string& fabric,
              const std::shared_ptr<const Topology>& topology, double size_bytes);
  /// Infinity where it does not work there.
  double finish_us(const std::string& name, const std::string& fabric,
                   const std::shared_ptr<const Topology>& topology, double size_bytes);
  /// That, before the replay has looked at it: to see where to look.
  double guess_us(const std::string& name, const std::string& fabric,
                  const std::shared_ptr<const Topology>& topology, double size_bytes);

 private:
  struct Kept;
  Kept* kept(const std::string& name, const std::string& fabric,
             const std::shared_ptr<const Topology>& topology);

  const Folder& folder_;
  std::map<std::pair<std::string, std::string>, Kept> kept_;  ///< by name and fabric
  std::uint64_t uses_ = 0;
};

/// Lower bounds of a series at a size; this rank alone.
Bounds bounds_at(const std::shared_ptr<const Topology>& topology, const Demand& demand);

/// What the certificate of the bound at another size proves at this one; nothing where it does not hold here.
std::optional<LowerBound> bound_by(const Certificate& certificate, double its_size_bytes,
                                   const Topology& topology, const Demand& demand);

/// By more than rounding.
bool is_earlier(double finish_us, double than_us);

}  // namespace rondo::catalogue
