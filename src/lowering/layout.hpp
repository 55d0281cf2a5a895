#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "rondo/core/collective.hpp"
#include "rondo/msccl/program.hpp"

namespace rondo::lowering {

/// A local copy of a GPU's own part, for one instance.
struct OwnCopy {
  int gpu = -1;
  msccl::Range src = {};
  msccl::Range dst = {};
  int count = 0;
};

/// Where data is in the input and output buffers. What one GPU has for another (for all others), or all GPUs
/// for a sum, is a part, one contribution or several: its chunks lie one after another, once an instance.
/// Places are those of instance 0.
class Layout {
 public:
  struct Options {
    bool in_place = false;
    bool in_turn = false;  ///< contributions one after another, as for custom demands
    int instances = 1;
  };
  /// Throws Error(usage) where `in_place` is not for the collective, Error(unavailable) when the
  /// contributions have no common unit that is large enough.
  Layout(const Demand& demand, const Options& options);

  int num_gpus() const { return static_cast<int>(input_chunks_.size()); }
  int input_chunks(int gpu) const { return input_chunks_[static_cast<std::size_t>(gpu)]; }
  int output_chunks(int gpu) const { return output_chunks_[static_cast<std::size_t>(gpu)]; }
  int chunks_per_loop() const;

  /// Units of the program's chunks that `chunk` is long.
  int length(int chunk) const { return length_[contribution_of(chunk)]; }
  /// Where `gpu` holds it at first, its own summand of a sum; nothing where it is no source.
  std::optional<msccl::Range> home(int chunk, int gpu) const;
  /// Where `gpu` wants it; nothing where it does not.
  std::optional<msccl::Range> wanted_at(int chunk, int gpu) const;
  /// How far the place of the next instance is from this one's in input and output.
  int instance_stride(int chunk) const { return stride_[contribution_of(chunk)]; }

  /// What each GPU keeps of its own input, for all instances.
  const std::vector<OwnCopy>& own_copies() const { return own_copies_; }

 private:
  std::size_t contribution_of(int chunk) const { return static_cast<std::size_t>(chunk / chunks_); }
  int offset_in_contribution(int chunk) const { return chunk % chunks_ * length(chunk); }
  using Places = std::vector<std::pair<int, msccl::Range>>;  ///< (gpu, beginning), by GPU
  std::optional<msccl::Range> find(const Places& places, int chunk, int gpu) const;
  void place_named(const Demand& demand, const Options& options);
  void place_in_turn(const Demand& demand, int instances);

  int chunks_;                                     ///< of a contribution
  std::vector<int> length_;                        ///< per contribution: of its chunks
  std::vector<int> stride_;                        ///< per contribution: of its part, an instance
  std::vector<Places> home_;                       ///< per contribution
  std::vector<Places> output_of_;                  ///< per contribution
  std::vector<int> input_chunks_, output_chunks_;  ///< per GPU
  std::vector<OwnCopy> own_copies_;
};

}  // namespace rondo::lowering
