#include "replay_sums.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "replay_internal.hpp"
#include "rondo/core/replay.hpp"

/// Rules 2, 3, 5, 7, 9 and 10 for sums: whose data a send carries.
///
/// What a send carries depends on all that has arrived at its near end by its start. So the sends of a chunk
/// are gone through in the order of these dependences; those that are left rest on each other.
namespace rondo::replay_internal {
namespace {

class SumDerivation {
 public:
  SumDerivation(const Execution& execution, const JoinedSends& transfers, FirstViolation& first,
                Causality& result)
      : execution_(execution),
        transfers_(transfers),
        first_(first),
        result_(result),
        places_(execution.topology.num_nodes()),
        waits_for_(transfers.crossings.size(), 0) {}

  void run() {
    for (std::size_t c = execution_.chunks.first; c < execution_.chunks.end; ++c) {
      if (execution_.reduces(ChunkId(c))) derive(ChunkId(c));
    }
  }

 private:
  const Send& send(std::size_t s) const { return execution_.sends[s]; }
  const JoinedSends::Crossing& crossing(std::int32_t id) const {
    return transfers_.crossings[static_cast<std::size_t>(id)];
  }
  SetTable::Set content(std::size_t s) { return sets_[s - begin_]; }
  GpuId source(std::size_t i) const { return contribution_->sources[i]; }

  void derive(ChunkId c) {
    contribution_ = &execution_.demand.contribution(c);
    begin_ = execution_.first_of(c);
    end_ = execution_.end_of(c);
    sets_.reset(end_ - begin_, contribution_->sources.size());
    is_known_.assign(end_ - begin_, 0);
    stays_.clear();
    make_places();
    for (Place& p : places_.all()) advance(p);
    while (!known_.empty()) {
      const std::size_t s = known_.back();
      known_.pop_back();
      pass_on(s);
    }
    for (std::size_t s = begin_; s < end_; ++s) {
      if (is_known_[s - begin_]) continue;
      refuse(s, send(s).start_us, 9,
             [] { return "cannot start: it rests on sends that rest on each other, or on none"; });
    }
    for (Place& p : places_.all()) finish(p);
    for (const GpuId g : contribution_->destinations) deliver(c, g);
    places_.clear();
  }

  Place& place(NodeId n) {
    Place& p = places_.at(n);
    if (p.set == kNone && execution_.topology.is_gpu(n)) p.set = sets_.add();
    return p;
  }

  void make_places() {
    for (std::size_t i = 0; i < contribution_->sources.size(); ++i)
      insert(own_set(source(i), contribution_->ready_us_of(i)), i);
    for (const HeldSum& held : contribution_->held) {
      const SetTable::Set set = own_set(held.gpu, 0);
      std::ranges::fill(set, 0);
      for (const GpuId g : held.sources) {
        const auto at = std::ranges::lower_bound(contribution_->sources, g);
        insert(set, static_cast<std::size_t>(at - contribution_->sources.begin()));
      }
    }
    for (std::size_t s = begin_; s < end_; ++s) {
      const NodeId src = execution_.src(s);
      const NodeId dst = execution_.dst(s);
      if (!execution_.is_cut_through(src)) place(src).out.push_back(s);  // by start, as sends are
      if (!execution_.is_cut_through(dst)) {
        place(dst).in.push_back(s);
      } else if (const std::int32_t id = transfers_.entered[s]; id != JoinedSends::kNone) {
        waits_for_[static_cast<std::size_t>(id)] = crossing(id).in.size();
      }
    }
    for (Place& p : places_.all()) p.find_instants(execution_.sends);
  }

  SetTable::Set own_set(GpuId g, double ready_us) {
    Place& p = place(execution_.topology.node_of(g));
    if (p.own == kNone) p.own = sets_.add();
    p.own_us = ready_us;
    return sets_[p.own];
  }

  /// Takes what arrives at a place, and lets leave it what starts then, in the order of time and as far as it
  /// is known.
  void advance(Place& p) {
    while (true) {
      const bool has_instant = p.done < p.instants.size();
      const bool leaves = p.left < p.out.size();
      if (has_instant && (!leaves || no_later(p.instants[p.done], send(p.out[p.left]).start_us))) {
        if (p.unknown[p.done] > 0) return;
        arrive(p, p.done++);
      } else if (leaves) {
        leave(p, p.out[p.left++]);
      } else {
        return;
      }
    }
  }

  void arrive(Place& p, std::size_t instant) {
    const std::span<std::size_t> sends = p.at_instant(instant);
    if (p.set == kNone) {
      for (const std::size_t s : sends) store(p, s);
      return;
    }
    const auto additions = std::stable_partition(sends.begin(), sends.end(),
                                                 [&](std::size_t s) { return send(s).op == SendOp::copy; });
    // Copies that contain one another, in whatever order they are named; and what becomes ready just then is
    // an addition like others unless a copy contains it.
    const std::span copies(sends.begin(), additions);
    std::ranges::stable_sort(copies, {}, [&](std::size_t s) { return count(content(s)); });
    const bool is_ready = no_later(p.own_us, p.instants[instant]);
    const auto contains_own = [&](std::size_t s) { return first_in_both(sets_[p.own], content(s)) != kNone; };
    if (is_ready && p.own != kNone &&
        (!no_later(p.instants[instant], p.own_us) || std::ranges::any_of(copies, contains_own)))
      bring_own(p);
    double latest_us = 0;
    for (const std::size_t s : sends) {
      take(p, s);
      latest_us = std::max(latest_us, send(s).arrival_us);
      note_whole(p, latest_us);
    }
    if (is_ready) bring_own(p);
  }

  /// Rule 9.
  void take(Place& p, std::size_t s) {
    const SetTable::Set set = sets_[p.set];
    if (send(s).op == SendOp::reduce) {
      if (const std::size_t i = first_in_both(set, content(s)); i != kNone) refuse_twice(s, i);
      unite(set, content(s));
      return;
    }
    if (const std::size_t i = first_missing(set, content(s)); i != kNone) {
      refuse(s, send(s).arrival_us, 9, [&] {
        return fmt::format(
            "overwrites the partial sum that GPU {} holds at {} us and loses the data of GPU {}: a copy has "
            "to "
            "contain what was there",
            execution_.topology.gpu_of(execution_.dst(s)).value, send(s).arrival_us, source(i).value);
      });
    }
    assign(set, content(s));
  }

  void bring_own(Place& p) {
    if (p.own == kNone) return;
    const SetTable::Set set = sets_[p.set];
    const SetTable::Set own = sets_[std::exchange(p.own, kNone)];
    if (const std::size_t i = first_in_both(set, own); i != kNone) {
      const Send& came = send(p.in.front());
      first_.offer(p.own_us, 9, came, [&] {
        return fmt::format(
            "rule 9: GPU {} adds what it has from {} us on to a sum of chunk {} that contains GPU {}'s "
            "already",
            execution_.topology.gpu_of(p.node).value, p.own_us, came.chunk.value, source(i).value);
      });
    }
    unite(set, own);
    note_whole(p, p.own_us);
  }

  void note_whole(Place& p, double at_us) {
    if (p.whole_us < 0 && count(sets_[p.set]) == static_cast<int>(contribution_->sources.size()))
      p.whole_us = at_us;
  }

  /// Rules 3 and 10 at a store-and-forward switch. What arrives with op 1 joins the last sum that began so,
  /// unless that has begun to leave.
  void store(Place& p, std::size_t s) {
    const bool adds = send(s).op == SendOp::reduce;
    if (!adds || p.adding == kNone || p.adding < p.sent_on) {
      if (adds) p.adding = p.stays.size();
      const std::size_t set = sets_.add();
      assign(sets_[set], content(s));
      p.stays.push_back(stays_.size());
      stays_.push_back({{s, send(s).arrival_us, send(s).arrival_us}, set});
      return;
    }
    StoredSum& stored = stays_[p.stays[p.adding]];
    if (const std::size_t i = first_in_both(sets_[stored.set], content(s)); i != kNone) refuse_twice(s, i);
    unite(sets_[stored.set], content(s));
    stored.stay.to_us = std::max(stored.stay.to_us, send(s).arrival_us);
  }

  void leave(Place& p, std::size_t s) {
    if (p.set == kNone) {
      leave_switch(p, s);
    } else {
      if (no_later(p.own_us, send(s).start_us)) bring_own(p);
      if (is_empty(sets_[p.set])) {
        first_.offer(send(s).start_us, 2, send(s), [&] {
          return fmt::format("rule 2: {}, but GPU {} holds nothing of the sum by then",
                             execution_.describe(s), execution_.topology.gpu_of(execution_.src(s)).value);
        });
      }
      assign(content(s), sets_[p.set]);
    }
    learn(s);
  }

  /// Oldest first; a switch that may copy sends the last one again (replay_causality.cpp says why).
  void leave_switch(Place& p, std::size_t s) {
    if (p.sent_on < p.stays.size()) {
      ++p.sent_on;
    } else if (p.stays.empty() || !execution_.topology.node(execution_.src(s)).multicast) {
      first_.offer(send(s).start_us, 3, send(s), [&] {
        return fmt::format(
            "rule 3: {} leaves a store-and-forward switch, but no arrival of the chunk by then is left "
            "to be sent on",
            execution_.describe(s));
      });
      return;
    }
    StoredSum& stored = stays_[p.stays[p.sent_on - 1]];
    stored.stay.to_us = std::max(stored.stay.to_us, send(s).start_us);
    assign(content(s), sets_[stored.set]);
  }

  void learn(std::size_t s) {
    is_known_[s - begin_] = 1;
    known_.push_back(s);
  }

  /// The far end of a send learns what it carries.
  void pass_on(std::size_t s) {
    const NodeId n = execution_.dst(s);
    if (!execution_.is_cut_through(n)) {
      Place& p = places_.at(n);
      --p.unknown[p.instant_of(send(s).arrival_us)];
      advance(p);
      return;
    }
    const std::int32_t id = transfers_.entered[s];
    if (id == JoinedSends::kNone || --waits_for_[static_cast<std::size_t>(id)] > 0) return;
    const std::vector<std::size_t>& in = crossing(id).in;
    sum_.assign(content(s).size(), 0);
    for (const std::size_t entering : in) {
      if (const std::size_t i = first_in_both(sum_, content(entering)); i != kNone) refuse_twice(entering, i);
      unite(sum_, content(entering));
    }
    for (const std::size_t onward : crossing(id).out) {
      if (is_known_[onward - begin_]) continue;
      assign(content(onward), sum_);
      learn(onward);
    }
  }

  template <class Sentence>
  void refuse(std::size_t s, double time_us, int rule, Sentence sentence) {
    first_.offer(time_us, rule, send(s),
                 [&] { return fmt::format("rule {}: {} {}", rule, execution_.describe(s), sentence()); });
  }

  /// `i`: a source whose data is there already.
  void refuse_twice(std::size_t s, std::size_t i) {
    const NodeId n = execution_.dst(s);
    const bool is_gpu = execution_.topology.is_gpu(n);
    refuse(s, send(s).arrival_us, is_gpu ? 9 : 10, [&] {
      return fmt::format("adds the data of GPU {} to a sum at {} {} that contains it already",
                         source(i).value, is_gpu ? "GPU" : "switch",
                         is_gpu ? execution_.topology.gpu_of(n).value : n.value);
    });
  }

  /// Rule 5 for what stays in a switch.
  void finish(Place& p) {
    if (p.set != kNone) bring_own(p);
    for (; p.sent_on < p.stays.size(); ++p.sent_on) {
      const Stay& stay = stays_[p.stays[p.sent_on]].stay;
      first_.offer(stay.from_us, 5, send(stay.send), [&] {
        return fmt::format("rule 5: {} arrives at switch {} at {} us and does not leave it",
                           execution_.describe(stay.send), execution_.dst(stay.send).value, stay.from_us);
      });
    }
    for (const std::size_t i : p.stays) result_.stays.push_back(stays_[i].stay);
  }

  /// Rule 7.
  void deliver(ChunkId c, GpuId g) {
    Place& p = place(execution_.topology.node_of(g));
    if (p.whole_us >= 0) {
      result_.serve(execution_.contribution_of(c), p.whole_us);
      return;
    }
    first_.offer(std::numeric_limits<double>::infinity(), 7, {c, LinkId{}}, [&] {
      std::size_t i = 0;
      while (contains(sets_[p.set], i)) ++i;
      return fmt::format("rule 7: the sum of chunk {} at GPU {}, its destination, never includes GPU {}",
                         c.value, g.value, source(i).value);
    });
  }

  const Execution& execution_;
  const JoinedSends& transfers_;
  FirstViolation& first_;
  Causality& result_;
  // Of the chunk at hand; its sends are begin_ .. end_, and their content the first sets.
  const Contribution* contribution_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  SetTable sets_;
  Places places_;
  std::vector<StoredSum> stays_;
  std::vector<char> is_known_;
  std::vector<std::size_t> known_;  ///< sends whose far ends do not know yet
  std::vector<std::uint64_t> sum_;
  std::vector<std::size_t> waits_for_;  ///< per crossing: sends that enter and are not known yet
};

}  // namespace

void derive_sums(const Execution& execution, const JoinedSends& transfers, FirstViolation& first,
                 Causality& result) {
  SumDerivation(execution, transfers, first, result).run();
}

}  // namespace rondo::replay_internal
