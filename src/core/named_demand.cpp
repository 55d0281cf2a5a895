#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "demand_caps.hpp"
#include "refuse.hpp"
#include "rondo/core/collective.hpp"
#include "rondo/core/error.hpp"

/// The demands of named collectives, over all GPUs or a group, of equal parts or of given ones.
namespace rondo {
namespace {

constexpr std::size_t kMaxChunks = std::size_t{1} << 24;
constexpr std::size_t kMaxDeliveries = 100'000'000;

/// Names the members of a group by their places in it, 0, 1, ..., as the collective's rule does.
class NamedParts {
 public:
  NamedParts(Collective collective, double size_bytes, const std::vector<GpuId>& members, std::size_t root,
             const std::vector<double>& counts)
      : collective_(collective), members_(members), root_(root), counts_(counts) {
    equal_bytes_ = size_bytes / static_cast<double>(collective->num_parts(members.size()));
  }

  /// A contribution for every part that another member wants, or that is a sum; without those of no bytes.
  std::vector<Contribution> contributions() const {
    std::vector<Contribution> all = collective_->reduces ? sums() : copies();
    std::erase_if(all, [](const Contribution& c) { return c.destinations.empty() || c.bytes == 0; });
    return all;
  }

 private:
  double bytes(const OutputPart& to, const InputPart& from) const {
    return counts_.empty() ? equal_bytes_ : counts_[collective_->count_of(to, from)];
  }

  template <class Visit>
  void for_each_part(const Visit& visit) const {
    collective_->for_each_output_part(members_.size(), root_, visit);
  }

  /// By part.
  std::vector<Contribution> sums() const {
    std::vector<Contribution> all(collective_->input_parts(members_.size()));
    for (Contribution& sum : all) {
      sum.origin = members_.front();
      sum.reduce = true;
      sum.sources = members_;
    }
    for_each_part([&](const OutputPart& to, const InputPart& from) {
      all[from.part].bytes = bytes(to, from);
      all[from.part].destinations.push_back(members_[to.gpu]);
    });
    return all;
  }

  /// By member and part of its input.
  std::vector<Contribution> copies() const {
    const std::size_t parts = collective_->input_parts(members_.size());
    const std::size_t inputs = collective_->input.at_root_only ? 1 : members_.size();
    const auto for_each_part_sent = [&](const auto& visit) {
      for_each_part([&](const OutputPart& to, const InputPart& from) {
        if (from.gpu != to.gpu) visit((inputs == 1 ? 0 : from.gpu * parts) + from.part, to, from);
      });
    };
    std::vector<std::size_t> counts(inputs * parts, 0);
    for_each_part_sent([&](std::size_t i, const OutputPart&, const InputPart&) { ++counts[i]; });
    std::vector<Contribution> all(inputs * parts);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].origin = members_[inputs == 1 ? root_ : i / parts];
      all[i].destinations.reserve(counts[i]);
    }
    for_each_part_sent([&](std::size_t i, const OutputPart& to, const InputPart& from) {
      all[i].bytes = bytes(to, from);
      all[i].destinations.push_back(members_[to.gpu]);
    });
    return all;
  }

  Collective collective_;
  const std::vector<GpuId>& members_;
  std::size_t root_;  ///< a place in the group
  const std::vector<double>& counts_;
  double equal_bytes_ = 0;
};

/// A lower bound of the collective's destinations, before anything of that size is allocated: no GPU wants
/// more than one part of its own.
std::size_t least_deliveries(Collective collective, std::size_t num_members) {
  const std::size_t outputs = collective->output.at_root_only ? 1 : num_members;
  return outputs * (collective->output_parts(num_members) - 1);
}

void check_size(double size_bytes, int chunks) {
  if (!(size_bytes > 0) || !std::isfinite(size_bytes)) {
    throw Error(ExitCode::usage,
                fmt::format("size is {} bytes; it has to be positive and finite", size_bytes));
  }
  if (chunks < 1) {
    throw Error(ExitCode::usage,
                fmt::format("chunks is {}; every contribution has at least 1 chunk", chunks));
  }
}

/// The root's place in the group.
std::size_t place_of_root(Collective collective, GpuId root, const std::vector<GpuId>& members,
                          std::size_t num_gpus) {
  if (!root.valid() || root.index() >= num_gpus) {
    throw Error(ExitCode::usage,
                fmt::format("root is {}, which is no GPU; GPUs are 0 to {}", root.value, num_gpus - 1));
  }
  if (!collective->has_root) {
    if (root == GpuId{0}) return 0;
    throw Error(ExitCode::usage, fmt::format("root is {}, but {} has no root; leave it out", root.value,
                                             to_string(collective)));
  }
  const auto at = std::ranges::lower_bound(members, root);
  if (at == members.end() || *at != root) {
    throw Error(ExitCode::usage, fmt::format("root is GPU {}, which is not in the group {}; name one of its "
                                             "members",
                                             root.value, to_string(members)));
  }
  return static_cast<std::size_t>(at - members.begin());
}

}  // namespace

void check_caps(std::size_t contributions, std::size_t deliveries, int chunks) {
  const auto per_contribution = static_cast<std::size_t>(chunks);
  if (contributions > kMaxChunks / per_contribution) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("{} contributions in {} chunks each are beyond the cap of {} chunks; ask for fewer",
                    contributions, chunks, kMaxChunks));
  }
  if (deliveries > kMaxDeliveries / per_contribution) {
    throw Error(
        ExitCode::unavailable,
        fmt::format("{} destinations in {} chunks each are beyond the cap of {} chunks x destinations; ask "
                    "for fewer chunks or GPUs",
                    deliveries, chunks, kMaxDeliveries));
  }
}

Demand make_demand(Collective collective, double size_bytes, std::size_t num_gpus, int chunks, GpuId root,
                   const CollectiveShape& shape) {
  check_size(size_bytes, chunks);
  if (num_gpus < 2) refuse(fmt::format("a collective needs at least two GPUs; there are {}", num_gpus));
  if (collective->source == nullptr) {
    throw Error(ExitCode::usage, fmt::format("collective '{}' has no shape of its own; give a demand file",
                                             to_string(collective)));
  }
  check_shape(shape, collective, num_gpus);
  const std::vector<GpuId> members = members_of(shape, num_gpus);
  const std::size_t place = place_of_root(collective, root, members, num_gpus);
  check_caps(1, least_deliveries(collective, members.size()), chunks);
  CollectiveShape scaled = shape;
  if (!scaled.counts.empty()) {
    const double of_counts = size_of_counts(collective, shape, num_gpus);
    for (double& bytes : scaled.counts) bytes *= of_counts > 0 ? size_bytes / of_counts : 1;
  }
  std::vector<Contribution> all =
      NamedParts(collective, size_bytes, members, place, scaled.counts).contributions();
  if (all.empty())
    refuse("counts are 0 wherever data would have to move; give at least one that is positive");
  return Demand(collective, size_bytes, num_gpus, std::move(all), chunks, std::move(scaled));
}

GpuId root_of(const Demand& demand) {
  const Collective collective = demand.collective();
  if (!collective->has_root) return GpuId{0};
  const Contribution& first = demand.contributions().front();
  return collective->output.at_root_only || collective->reduces ? first.destinations.front() : first.origin;
}

}  // namespace rondo
