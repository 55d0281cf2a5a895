#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "rondo/mscclpp/plan.hpp"

namespace rondo {

/// The operations of one threadblock, with the nops that they need.
class OpEmitter {
 public:
  explicit OpEmitter(std::vector<mscclpp::Op>& ops) : ops_(ops) {}

  /// Done by thread i for the i-th of `ids`: lets others go on, after all that the threads did.
  void publish(mscclpp::Op op, std::size_t ids) {
    if (moved_ || (waited_ && ids > 1) || waited_by_several_) sync();
    ops_.push_back(std::move(op));
  }
  void wait(mscclpp::Op op, std::size_t ids) {
    ops_.push_back(std::move(op));
    waited_ = true;
    waited_by_several_ = waited_by_several_ || ids > 1;
  }
  /// Done by all threads, or by the first: a port.
  void move(mscclpp::Op op, bool by_port) {
    if (moved_ || waited_by_several_ || (waited_ && !by_port)) sync();
    ops_.push_back(std::move(op));
    moved_ = moved_ || !by_port;
  }

 private:
  void sync() {
    ops_.push_back({.type = mscclpp::OpType::nop});
    moved_ = waited_ = waited_by_several_ = false;
  }

  std::vector<mscclpp::Op>& ops_;
  bool moved_ = false, waited_ = false, waited_by_several_ = false;  ///< since the last nop
};

}  // namespace rondo
