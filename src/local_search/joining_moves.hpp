#pragma once

#include <span>
#include <vector>

#include "rondo/core/index.hpp"
#include "rondo/core/random.hpp"
#include "rondo/local_search/joined_plan.hpp"

namespace rondo {

/// Changes of a joined plan: of all images of a transfer at once. Plans that result are not placed yet:
/// starts only define the order.
class JoiningMoves {
 public:
  /// `space` must outlive it.
  explicit JoiningMoves(const JoinedSpace& space);

  /// A random neighbour of a plan that is placed.
  JoinedPlan neighbour_of(const JoinedPlan& plan, Random& random);
  /// How transfers of a hop that follow one another go together.
  struct Runs {
    std::size_t most;  ///< chunks together
    double share;      ///< of what the hop has yet to carry: less and less goes together towards the end
    bool costly;       ///< only over links of the greatest message cost
    bool waits;        ///< also for chunks that come to the sender after the first of the run could go
  };
  JoinedPlan joined_runs(const JoinedPlan& plan, const Runs& how) const;

 private:
  /// What changes between two plans.
  struct Addition {
    std::size_t transfer;
    ChunkId chunk;
  };
  struct NewTransfer {
    int hop;
    std::vector<ChunkId> chunks;
    double start_us;
  };
  /// How a chunk comes to a GPU: by an image of a transfer of the plan, or over a hop of its own.
  struct Label {
    double at_us;
    int transfer;  ///< -1: none
    int hop;       ///< -1: it is there
    int element;   ///< of the image
  };

  void begin(const JoinedPlan& plan);
  JoinedPlan changed() const;
  void join_two(Random& random);
  void move_some(std::size_t from, std::size_t to, Random& random);
  void follow(ChunkId chunk, std::size_t leader);
  void follow_over(std::size_t t, int element, ChunkId chunk, std::span<const ChunkId> leading,
                   bool is_copied);
  void part(std::size_t t, Random& random);
  void bring_otherwise(std::size_t t, Random& random);
  bool bring(ChunkId chunk, GpuId goal, Random& random);
  void relax(GpuId from, double bytes, Random& random);
  void relax_until(double t_us, GpuId goal, double bytes, Random& random);
  void set_label(GpuId g, const Label& label);
  int next_on_hop(std::size_t t) const;
  /// The ends of the image of a hop.
  GpuId source(int hop, int element) const { return space_.images_of_hop(hop)[index(element)].src; }
  GpuId target(int hop, int element) const { return space_.images_of_hop(hop)[index(element)].dst; }

  const JoinedSpace& space_;
  std::vector<std::vector<int>> out_;  ///< hops, per GPU
  double greatest_message_us_ = 0;
  const JoinedPlan* plan_ = nullptr;
  std::vector<char> removed_;     ///< of plan_->chunks
  std::vector<double> start_us_;  ///< per transfer: defines the order
  std::vector<double> bytes_;     ///< per transfer
  std::vector<Addition> added_;
  std::vector<NewTransfer> new_;
  std::vector<double> free_us_;  ///< per link that stands for its orbit, after all of plan_
  std::vector<char> forbidden_;  ///< per transfer: must not take more
  std::vector<Label> labels_;    ///< per GPU
  std::vector<char> relaxed_;    ///< per GPU
  double next_relaxed_us_ = 0;   ///< no label that may be relaxed is earlier
  std::vector<char> follows_;    ///< per GPU: has the chunk from the one that is to get it otherwise
};

}  // namespace rondo
