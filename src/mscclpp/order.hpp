#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/mscclpp/check.hpp"
#include "rondo/mscclpp/unfolded.hpp"

namespace rondo::mscclpp {

/// Something that happens, at one moment or over a time.
struct Event {
  int gpu = -1;
  int tb = -1;
  int op = -1;
  const Action* move = nullptr;  ///< what it moves; a port's is an event of its own
  int chain = -1;    ///< what says that it is over: syncs of its threadblock, or what its port does
  int position = 0;  ///< over once the chain has come so far
  std::vector<int> before = {};          ///< events that it comes after
  std::vector<int> before_relaxed = {};  ///< by relaxed signals alone
};

/// The events of a plan and their order.
class Order {
 public:
  /// Findings of pairing.
  Order(const Unfolded& plan, std::vector<Finding>& findings);

  /// Orders all events; false, with a finding, where some wait for themselves. To be called once, after
  /// `follow` has been for all packets.
  bool sort(std::vector<Finding>& findings);
  void follow(int event, int earlier) { event_at(event).before.push_back(earlier); }

  const std::vector<Event>& events() const { return events_; }
  const std::vector<int>& sorted() const { return sorted_; }
  /// The event at which all that the GPU does has ended.
  int end_of(int gpu) const { return ends_[static_cast<std::size_t>(gpu)]; }
  /// Whether a move is over when `later` begins; `visibly`: not by relaxed signals.
  bool is_over(int move, int later, bool visibly) const;
  /// Whether some threadblock of `gpu` has begun when `event` happens.
  bool has_begun(int gpu, int event) const;
  std::string where(int event) const;

 private:
  class Builder;
  Event& event_at(int event) { return events_[static_cast<std::size_t>(event)]; }
  void count(bool relaxed, std::vector<std::uint16_t>& clocks);

  std::vector<Event> events_;
  std::vector<int> sorted_, ends_;
  std::vector<std::vector<int>> tb_chains_;  ///< per GPU
  std::vector<int> marks_;                   ///< per event: the chain that it moves on; -1: none
  int num_chains_ = 0;
  bool has_relaxed_ = false;
  std::vector<std::uint16_t> clocks_, visible_clocks_;  ///< per event and chain: how far the chain has come
};

}  // namespace rondo::mscclpp
