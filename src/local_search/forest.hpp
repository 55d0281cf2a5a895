#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rondo/core/insertion_timetable.hpp"
#include "rondo/core/random.hpp"
#include "rondo/local_search/transfer_plan.hpp"

namespace rondo {

/// A plan as one tree of transfers a chunk, each of which can be taken out and grown anew in the time that
/// the others leave. For data that all GPUs want, hops whose bandwidth never changes, and GPUs that may hold
/// whatever they pass on. Read backwards in time, trees lead to their roots, where parts of a sum meet; there
/// switches do not copy.
class Forest {
 public:
  using Reading = InsertionTimetable::Reading;
  /// A transfer of one chunk; causes and originals are positions in its tree.
  struct Branch {
    int hop = 0;
    int cause = -1;
    int copy_of = -1;
    std::size_t first_link = 0;  ///< of the hop, that no branch before carries the chunk over
    double start_us = 0;
    double arrival_us = 0;
  };
  using Tree = std::vector<Branch>;

  /// Where a tree begins, and from when on.
  struct Root {
    GpuId gpu;
    double ready_us = 0;
  };

  /// Whether plans of this space can be taken apart.
  static bool applies(const PlanSpace& space);
  /// The trees of a plan; `space` must outlive it.
  Forest(const TransferPlan& plan, const PlanSpace& space);
  /// By chunk, and back: in the order of chunks, each transfer at its start; the quality is not known.
  static std::vector<Tree> trees_of(const TransferPlan& plan, const PlanSpace& space);
  static TransferPlan plan_of(const std::vector<Tree>& trees);
  /// Without trees.
  Forest(const PlanSpace& space, Reading reading);
  Forest(const Forest&) = delete;
  Forest& operator=(const Forest&) = delete;

  /// From now on trees of both leave each other's time alone. They have the same hops, one is read forwards
  /// and one backwards: a time in one is `horizon_us` minus that of the other.
  void share_links_with(Forest& other, double horizon_us);

  std::size_t num_trees() const { return trees_.size(); }
  const Tree& tree(std::size_t chunk) const { return trees_[chunk]; }
  /// When the last GPU has the chunk.
  double ends_us(std::size_t chunk) const { return ends_us_[chunk]; }
  double late_us(std::size_t chunk, double target_us) const { return ends_us_[chunk] - target_us; }
  double latest_us() const;
  /// Per link, how long it is occupied, in times of its whole bandwidth.
  const std::vector<double>& load_us() const { return load_us_; }

  Tree take_out(std::size_t chunk);
  void put_back(std::size_t chunk, Tree tree);
  /// Per link, what a us of it costs from now on; nothing at first.
  void set_prices(std::vector<double> price);
  /// Puts in a tree that grows by a transfer at a time: the one with the least sum of arrival and `dearness`
  /// times the price of the links that it needs.
  void grow(std::size_t chunk, const Root& root, double dearness);
  /// From where the demand has it.
  void grow(std::size_t chunk, double dearness);
  /// Nothing else about a tree is free.
  void vary(std::size_t, const Tree&, double, Random&) {}
  /// What growing has taken so far.
  std::uint64_t looks() const { return timetable_.looks(); }
  /// What the branches of the tree, all links together, cost.
  double price_of(std::size_t chunk) const;

  TransferPlan plan() const { return plan_of(trees_); }

 private:
  static constexpr int kNobody = -2;
  static constexpr int kOrigin = -1;
  struct Option {
    double cost_us;
    Branch branch;
  };

  const Hop& hop_of(const Branch& branch) const { return space_.hops[static_cast<std::size_t>(branch.hop)]; }
  /// Where a tree comes from over the hop, and where to.
  GpuId from(const Hop& hop) const { return reading_ == Reading::forwards ? hop.src : hop.dst; }
  GpuId to(const Hop& hop) const { return reading_ == Reading::forwards ? hop.dst : hop.src; }
  /// Hops from there on, and to there.
  const std::vector<int>& out_of(GpuId gpu) const {
    return (reading_ == Reading::forwards ? leaving_ : space_.into)[gpu.index()];
  }
  const std::vector<int>& into(GpuId gpu) const {
    return (reading_ == Reading::forwards ? space_.into : leaving_)[gpu.index()];
  }
  bool may_copy() const { return space_.may_copy() && reading_ == Reading::forwards; }
  void reserve(std::size_t chunk, const Branch& branch, double sign);
  void grow_from_gpu(GpuId gpu, double held_from_us);
  void grow_from_branch(int position);
  void offer_hop(int h, double held_from_us);
  void offer_copy(int h, int position);
  void look_again(GpuId gpu);
  double price_of_hop(const Hop& hop, std::size_t first_link, double bytes) const;
  void price_hops(double bytes);
  bool enters_anew(const Hop& hop, std::size_t first_link, int original) const;

  const PlanSpace& space_;
  Reading reading_;
  Forest* other_ = nullptr;  ///< whose links are the same
  double horizon_us_ = 0;
  std::vector<std::vector<int>> leaving_;  ///< hops, per source
  InsertionTimetable timetable_;
  std::vector<Tree> trees_;
  std::vector<double> ends_us_;
  std::vector<double> load_us_;
  std::vector<double> price_;
  std::vector<double> hop_price_;  ///< of priced_bytes_
  double priced_bytes_ = -1;       ///< none yet
  // Of the tree that grows:
  double bytes_ = 0;
  double ready_us_ = 0;
  double dearness_ = 0;
  Tree growing_;
  std::vector<int> bringer_;     ///< per GPU
  std::vector<Option> options_;  ///< per GPU: the best one
};

}  // namespace rondo
