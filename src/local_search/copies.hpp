#pragma once

#include <cstddef>
#include <vector>

#include "rondo/core/insertion_timetable.hpp"
#include "rondo/local_search/transfer_plan.hpp"

/// Transfers that switches copy: an original and its copies go over a tree of links.
namespace rondo {

/// The position of the transfer of which transfer i is a copy; i itself where it is none.
inline int original_of(const std::vector<PlannedTransfer>& transfers, std::size_t i) {
  return transfers[i].copy_of >= 0 ? transfers[i].copy_of : static_cast<int>(i);
}

/// Counts every link of a tree once, as long as an original and its copies are asked about in a row.
class LinksOnce {
 public:
  explicit LinksOnce(std::size_t links) : last_(links, -1) {}
  bool is_new(int original, LinkId link) {
    int& last = last_[link.index()];
    if (last == original) return false;
    last = original;
    return true;
  }

 private:
  std::vector<int> last_;
};

/// How many links both hops begin with.
std::size_t links_in_common(const Hop& a, const Hop& b);

/// Whether switches can copy to the end of `copy` what goes over `hop`, at the same rate.
bool may_be_copied(const Topology& topology, const Hop& hop, const Hop& copy);

/// Whether both hops enter some switch or GPU, `hop` with a link from `first_link` on: what a tree carries in
/// once it may not carry in again, over whatever link and whenever.
bool enters_again(const Topology& topology, const Hop& hop, std::size_t first_link, const Hop& other);

/// Originals and copies of a plan, in any order.
class CopyTrees {
 public:
  /// `alone`: transfers that are neither from now on; the first of what is left is the original. Empty: none.
  /// Plan and space must outlive it.
  CopyTrees(const TransferPlan& plan, const PlanSpace& space, const std::vector<char>& alone = {});

  /// The earliest start >= `not_before_us` of a tree that all of its links allow.
  double earliest_start(const InsertionTimetable& timetable, int original, double not_before_us) const;
  /// Reserves a tree in a timetable that is read backwards, so that each of its branches ends after
  /// `needed_from_us` of its transfer; returns where all of them begin, in reversed time.
  double place_backwards(InsertionTimetable& timetable, int original,
                         const std::vector<double>& needed_from_us) const;

  bool is_single(int original) const {
    return original_.empty() || next_[static_cast<std::size_t>(original)] < 0;
  }
  /// Of what goes over the same tree as transfer i.
  int original(int i) const { return original_.empty() ? i : original_[static_cast<std::size_t>(i)]; }
  struct Member {
    int transfer = 0;
    std::size_t first_link = 0;  ///< of its hop, that none before it in the tree goes over
  };
  /// Calls `f(member)` for the original and then for its copies.
  template <class F>
  void for_each(int original, F&& f) const {
    f(Member{original, 0});
    if (original_.empty()) return;
    for (int i = next_[static_cast<std::size_t>(original)]; i >= 0; i = next_[static_cast<std::size_t>(i)])
      f(Member{i, first_link_[static_cast<std::size_t>(i)]});
  }

 private:
  const TransferPlan& plan_;
  const PlanSpace& space_;
  std::vector<int> original_;  ///< empty where nothing is copied
  std::vector<int> next_;
  std::vector<std::size_t> first_link_;
};

/// Transfer i, whose hop or cause is about to change, is no copy any more, and has none: its first copy takes
/// its place.
void leave_tree(TransferPlan& plan, std::size_t i);

}  // namespace rondo
