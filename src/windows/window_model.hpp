#pragma once

#include <vector>

#include "rondo/local_search/neighbours.hpp"
#include "rondo/model/linear_model.hpp"

/// The model of one window of a plan: its transfers may take other ways, so that all that follows moves
/// forward.
namespace rondo {

/// A stretch of time of a plan. What starts before it stays as early as it is; what can start later than it
/// is as late as the finish time allows; the members, which have to start in it, are between the two.
struct Window {
  double from_us = 0;
  double until_us = 0;
  std::vector<int> members = {};  ///< transfers that start at from_us or later and at the latest before
                                  ///< until_us, by latest start
};

/// Cuts windows out of a plan, which has to outlive it.
class WindowChooser {
 public:
  explicit WindowChooser(const SurveyedPlan& plan);
  /// Of at most `most` members; until_us follows from that.
  Window from(double from_us, std::size_t most) const;

 private:
  const SurveyedPlan& plan_;
  std::vector<int> by_latest_start_;
};

/// What the windows of a round see of a plan beside its transfers.
struct PlanView {
  PlanView(const SurveyedPlan& surveyed_plan, const PlanSpace& plan_space, double most);

  const SurveyedPlan& surveyed;
  const PlanSpace& space;
  double most_us = 0;  ///< by which a window may move what follows it
  std::vector<std::vector<int>> on_link =
      {};  ///< transfers, by latest start; of copies one; none on links that carry several
  std::vector<std::vector<int>> children = {};  ///< per transfer, those that it causes
  std::vector<char> is_wanted = {};             ///< per transfer: its GPU wants the chunk
  /// Per transfer: no copy, nor its original, needs a link that on_link has it for.
  std::vector<char> is_free = {};

  /// The transfer that brings the chunk; -1 at its origin, -2 where nothing does.
  int bringer(ChunkId c, GpuId g) const { return bringer_[c.index() * gpus_ + g.index()]; }

 private:
  std::size_t gpus_;
  std::vector<int> bringer_;
};

/// Another way for a member.
struct Detour {
  int member = 0;  ///< position in Window::members
  int hop = 0;
  int cause = -1;
  double from_us = 0;  ///< when its source holds the chunk, if that is no member
};

struct WindowModel {
  LinearModel model = {};
  std::vector<Detour> detours = {};
  int first_detour = 0;            ///< column of the first one; they are the binaries
  int first_start = 0;             ///< column of the first member's start
  int first_arrival = 0;           ///< column of the first member's arrival
  std::vector<double> start = {};  ///< everything as it is: lambda (column 0) is 0
};

/// Maximises lambda (up to PlanView::most_us) such that every arrival that the rest of the plan uses comes by
/// its due time minus lambda, and every link that it uses is free by its own time minus lambda. Members that
/// stay keep their order on each link; what takes a detour has to find room on its links, at what time is
/// left to placing.
WindowModel window_model(const PlanView& view, const Window& window);

}  // namespace rondo
