#include "rondo/core/retiming.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/core/hops.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/link_timetable.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/core/retimer.hpp"
#include "rondo/core/transfers.hpp"
#include "timed_transfers.hpp"

namespace rondo {
namespace {

/// In which parts of sums are held back that came before what had left without them: so many, and fewer of
/// more sends than that together, but two in any case.
constexpr double kMostPasses = 32;
constexpr double kSendsOfPasses = 3e6;

class Retiming {
 public:
  /// `shapes`: of `transfers`, which are in the order of starts; empty: each is found when it is placed.
  /// `not_before_us`: by transfer; empty: 0.
  Retiming(const TimedSends& before, const Topology& topology, const Demand& demand, int concurrency,
           std::span<const TransferSends> transfers, std::span<const TransferShape> shapes,
           std::span<const double> not_before_us)
      : before_(before),
        transfers_(transfers),
        shapes_(shapes),
        sends_(before.sends),
        topology_(topology),
        demand_(demand),
        not_before_us_(not_before_us),
        timetable_(topology, concurrency) {}

  Schedule run() {
    arrivals_.reserve(sends_.size());
    last_arrival_.reserve(sends_.size());
    schedule_.sends.reserve(sends_.size());
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      if (shapes_.empty()) {
        place(i, shape_of(transfers_[i], before_, topology_, demand_));
      } else {
        place(i, shapes_[i]);
      }
    }
    canonicalise(schedule_);
    return std::move(schedule_);
  }

  /// Whether some part of a sum came too early: before what had left without it. Then `not_before_us` says
  /// from when on its transfer may start.
  bool came_too_early(std::vector<double>& not_before_us) const {
    bool is_any = false;
    for (const Departure& out : departures_) {
      const auto here = last_arrival_.find(out.place);
      if (here == last_arrival_.end()) continue;
      for (int a = here->second; a >= 0; a = arrivals_[index(a)].earlier) {
        const Arrival& in = arrivals_[index(a)];
        const bool was_after = in.before_us > out.before_us && !times_equal(in.before_us, out.before_us);
        if (!was_after || (in.now_us > out.now_us && !times_equal(in.now_us, out.now_us))) continue;
        if (not_before_us.empty()) not_before_us.assign(transfers_.size(), 0);
        double& from_us = not_before_us[in.transfer];
        // Clearly after it, as the replay compares times.
        const double later_us = out.now_us - in.now_us + 1e-6 * (1 + out.now_us);
        from_us = std::max(from_us, in.start_us + later_us);
        is_any = true;
      }
    }
    return is_any;
  }

 private:
  struct Arrival {
    double before_us;
    double now_us;
    int earlier;           ///< of the same chunk at the same GPU; -1: none
    double start_us;       ///< of its transfer, now
    std::size_t transfer;  ///< by start
  };
  /// Of a part of a sum from a GPU.
  struct Departure {
    std::uint64_t place;  ///< key of chunk and GPU
    double before_us;
    double now_us;
  };

  /// When what leaves over `send` is there, with all that it included before.
  double available_us(const Send& send, GpuId gpu) const {
    const Contribution& part = demand_.contribution(send.chunk);
    const auto here = last_arrival_.find(key(send.chunk, gpu));
    double at_us = own_ready_us(part, gpu);
    if (here == last_arrival_.end()) return std::max(at_us, 0.0);
    double first_us = -1;
    for (int a = here->second; a >= 0; a = arrivals_[index(a)].earlier) {
      const Arrival& arrival = arrivals_[index(a)];
      if (arrival.before_us > send.start_us && !times_equal(arrival.before_us, send.start_us)) continue;
      at_us = std::max(at_us, arrival.now_us);
      first_us = first_us < 0 ? arrival.now_us : std::min(first_us, arrival.now_us);
    }
    // Data that is no sum is there with its first copy.
    if (part.reduce) return std::max(at_us, 0.0);
    return own_ready_us(part, gpu) >= 0 ? own_ready_us(part, gpu) : std::max(first_us, 0.0);
  }

  void place(std::size_t number, const TransferShape& shape) {
    const TransferSends& transfer = transfers_[number];
    double not_before_us = not_before_us_.empty() ? 0 : not_before_us_[number];
    for (const int s : transfer.sends) {
      const NodeId src = topology_.link(before_.link_of(sends_[index(s)])).src;
      if (topology_.is_gpu(src))
        not_before_us = std::max(not_before_us, available_us(sends_[index(s)], topology_.gpu_of(src)));
    }
    const double t = timetable_.earliest_start(shape.hop, shape.bytes, not_before_us);
    const std::size_t first = schedule_.sends.size();
    append_transfer(transfer, shape, before_, t, timetable_, next_number_, schedule_.sends);
    for (std::size_t i = 0; i < transfer.sends.size(); ++i) {
      const Send& now = schedule_.sends[first + i];
      const Send& before = sends_[index(transfer.sends[i])];
      const auto [src, dst] = std::pair(topology_.link(now.link).src, topology_.link(now.link).dst);
      if (topology_.is_gpu(src) && demand_.contribution(now.chunk).reduce)
        departures_.push_back({key(now.chunk, topology_.gpu_of(src)), before.start_us, now.start_us});
      if (topology_.is_gpu(dst)) {
        int& last = last_arrival_.try_emplace(key(now.chunk, topology_.gpu_of(dst)), -1).first->second;
        arrivals_.push_back({before.arrival_us, now.arrival_us, last, t, number});
        last = static_cast<int>(arrivals_.size()) - 1;
      }
      schedule_.finish_us = std::max(schedule_.finish_us, now.arrival_us);
    }
  }

  std::uint64_t key(ChunkId chunk, GpuId gpu) const {
    return static_cast<std::uint64_t>(chunk.index()) * topology_.num_gpus() + gpu.index();
  }

  const TimedSends& before_;
  std::span<const TransferSends> transfers_;
  std::span<const TransferShape> shapes_;
  std::span<const Send> sends_;
  const Topology& topology_;
  const Demand& demand_;
  std::span<const double> not_before_us_;
  LinkTimetable timetable_;
  std::int32_t next_number_ = next_transfer_number(before_.sends);
  std::vector<Departure> departures_;
  std::vector<Arrival> arrivals_;
  std::unordered_map<std::uint64_t, int> last_arrival_;  ///< by chunk and GPU
  Schedule schedule_;
};

Schedule in_passes(const TimedSends& before, const Topology& topology, const Demand& demand, int concurrency,
                   std::span<const TransferSends> transfers, std::span<const TransferShape> shapes) {
  std::vector<double> not_before_us;
  const auto sends = static_cast<double>(std::max<std::size_t>(before.sends.size(), 1));
  const int passes = static_cast<int>(std::clamp(kSendsOfPasses / sends, 2.0, kMostPasses));
  for (int pass = 0;; ++pass) {
    Retiming retiming(before, topology, demand, concurrency, transfers, shapes, not_before_us);
    Schedule schedule = retiming.run();
    if (pass == passes || !retiming.came_too_early(not_before_us)) return schedule;
  }
}

}  // namespace

struct Retimer::Transfers {
  std::vector<TransferSends> sends;
  std::vector<TransferShape> shapes;
};

Retimer::Retimer(const TimedSends& before, const Topology& topology, const Demand& demand)
    : before_(before),
      topology_(topology),
      transfers_(
          std::make_unique<Transfers>(Transfers{transfers_by_start(before.topology, before.sends), {}})) {
  transfers_->shapes.reserve(transfers_->sends.size());
  for (const TransferSends& transfer : transfers_->sends)
    transfers_->shapes.push_back(shape_of(transfer, before, topology, demand));
}
Retimer::Retimer(Retimer&&) noexcept = default;
Retimer::~Retimer() = default;

Schedule Retimer::at(const Demand& demand, int concurrency) {
  for (TransferShape& shape : transfers_->shapes) shape.bytes = demand.bytes(shape.chunks);
  return in_passes(before_, topology_, demand, concurrency, transfers_->sends, transfers_->shapes);
}

std::vector<LinkId> matching_links(const Topology& from, const Topology& to) {
  for (std::size_t n = 0; n < from.num_nodes(); ++n) {
    const bool is_there = n < to.num_nodes() && to.is_gpu(NodeId(n)) == from.is_gpu(NodeId(n));
    if (is_there && (n + 1 < from.num_nodes() || to.num_gpus() == from.num_gpus())) continue;
    throw Error(
        ExitCode::bad_data,
        fmt::format("topology '{}' has {} GPUs in {} nodes, '{}' has {} in {}, and node {} is not the same "
                    "in both; a schedule needs nodes of the same numbers",
                    from.name(), from.num_gpus(), from.num_nodes(), to.name(), to.num_gpus(), to.num_nodes(),
                    n));
  }
  std::vector<LinkId> match(from.num_links());
  std::map<std::pair<NodeId, NodeId>, std::size_t> used;
  for (std::size_t l = 0; l < match.size(); ++l) {
    const Link& link = from.links()[l];
    std::size_t skip = used[{link.src, link.dst}]++;
    for (const LinkId candidate : to.out_links(link.src)) {
      if (to.link(candidate).dst != link.dst || skip-- > 0) continue;
      match[l] = candidate;
      break;
    }
  }
  return match;
}

Schedule retimed(const TimedSends& before, const Topology& topology, const Demand& demand, int concurrency) {
  const std::vector<TransferSends> transfers = transfers_by_start(before.topology, before.sends);
  return in_passes(before, topology, demand, concurrency, transfers, {});
}

}  // namespace rondo
