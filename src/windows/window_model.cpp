#include "window_model.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <utility>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMostDetours = 6;         ///< of a member
constexpr std::size_t kMostCrowdedDetours = 2;  ///< of these, over links that members use
constexpr double kWorthOfLinks = 0.1;           ///< of all links becoming free earlier, against lambda
constexpr double kCostOfDetours = 1e-3;         ///< of all members together, against lambda

bool carries_several(const HopLink& part) {
  return part.share < 1 - kWholeLink;
}

class Builder {
 public:
  Builder(const PlanView& view, const Window& window)
      : view_(view),
        window_(window),
        transfers_(view.surveyed.plan.transfers),
        finish_us_(view.surveyed.plan.quality.finish_us),
        member_of_(transfers_.size(), -1) {
    for (std::size_t m = 0; m < window.members.size(); ++m)
      member_of_[index(window.members[m])] = static_cast<int>(m);
  }

  WindowModel build() {
    const std::size_t n = window_.members.size();
    add_column(0, 0, view_.most_us, -1);
    built_.first_start = model().num_columns();
    for (const int i : window_.members) add_column(latest_us(index(i)), 0, finish_us_, 0);
    built_.first_arrival = model().num_columns();
    for (const int i : window_.members)
      add_column(latest_us(index(i)) + view_.space.duration_us(transfers_[index(i)]), 0, kInfinity, 0);
    find_links();
    find_detours();
    built_.first_detour = model().num_columns();
    for (std::size_t d = 0; d < built_.detours.size(); ++d) {
      add_column(0, 0, 1, kCostOfDetours * view_.most_us / static_cast<double>(n));
      model().integer.back() = 1;
    }
    for (std::size_t m = 0; m < n; ++m) add_member(m);
    for (const auto& [link, room] : rooms_) add_link(link, room);
    for (std::size_t d = 0; d < built_.detours.size(); ++d) add_detour(d);
    return std::move(built_);
  }

 private:
  struct Entry {
    int column;
    double value;
  };
  /// A link between what is before the window and what is after it.
  struct Room {
    double from_us = 0;
    double until_us = kInfinity;
    std::vector<int> members = {};                     ///< by latest start
    double members_us = 0;                             ///< time that they take
    std::vector<std::pair<int, double>> detours = {};  ///< with the time that each takes
  };

  LinearModel& model() { return built_.model; }
  void add_column(double now, double lower, double upper, double cost) {
    model().add_column(lower, upper, cost);
    built_.start.push_back(now);
  }
  int row(double lower, double upper, std::initializer_list<Entry> entries) {
    const int r = model().add_row(lower, upper);
    for (const Entry& e : entries) model().add_entry(r, e.column, e.value);
    return r;
  }
  void add_detours(int r, std::size_t m, double value) {
    for (const int d : detours_of_[m]) model().add_entry(r, built_.first_detour + d, value);
  }
  int start_of(std::size_t m) const { return built_.first_start + static_cast<int>(m); }
  int arrival_of(std::size_t m) const { return built_.first_arrival + static_cast<int>(m); }
  double arrival_us(std::size_t i) const { return view_.space.arrival_us(transfers_[i]); }
  double bytes(std::size_t i) const { return view_.space.bytes(transfers_[i]); }
  bool is_before(std::size_t i) const { return transfers_[i].start_us < window_.from_us; }
  double latest_us(std::size_t i) const { return view_.surveyed.latest_start_us[i]; }

  const Room& room_of(LinkId link) {
    const auto [found, is_new] = rooms_.try_emplace(link);
    Room& room = found->second;
    if (!is_new) return room;
    for (const int i : view_.on_link[link.index()]) {
      const Hop& hop = view_.space.hop(transfers_[index(i)]);
      for (const HopLink& part : hop.links) {
        if (part.link != link) continue;
        const double offset = part.offset_us_of(bytes(index(i)));
        const double occupied = part.occupied_us(bytes(index(i)));
        if (is_before(index(i))) {
          room.from_us = std::max(room.from_us, transfers_[index(i)].start_us + offset + occupied);
        } else if (member_of_[index(i)] >= 0) {
          room.members.push_back(i);
          room.members_us += occupied;
        } else {
          room.until_us = std::min(room.until_us, latest_us(index(i)) + offset);
        }
      }
    }
    return room;
  }

  void find_links() {
    for (const int i : window_.members) {
      for (const HopLink& part : view_.space.hop(transfers_[index(i)]).links) {
        if (!carries_several(part)) room_of(part.link);
      }
    }
  }

  void find_detours() {
    detours_of_.resize(window_.members.size());
    struct Found {
      Detour detour;
      bool is_crowded;
      double arrival_us;
    };
    for (std::size_t m = 0; m < window_.members.size(); ++m) {
      const std::size_t i = index(window_.members[m]);
      const PlannedTransfer& t = transfers_[i];
      if (view_.is_free[i] == 0) continue;
      std::vector<Found> found;
      for (const int h : view_.space.into[view_.space.hop(t).dst.index()]) {
        const Hop& hop = view_.space.hops[index(h)];
        const int bringer = view_.bringer(t.chunk, hop.src);
        if (h == t.hop || bringer < -1 || bringer == window_.members[m]) continue;
        double held_us = view_.space.demand.ready_us(t.chunk);
        if (bringer >= 0) {
          if (!is_before(index(bringer)) && member_of_[index(bringer)] < 0) continue;
          held_us = arrival_us(index(bringer));
        }
        bool is_crowded = false;
        for (const HopLink& part : hop.links) {
          if (carries_several(part)) continue;
          const Room& room = room_of(part.link);
          held_us = std::max(held_us, room.from_us - part.offset_us_of(bytes(i)));
          is_crowded =
              is_crowded || room.until_us - room.from_us - room.members_us < part.occupied_us(bytes(i));
        }
        const double arrival = held_us + hop.duration_us(bytes(i));
        if (arrival > view_.surveyed.due_us[i] + view_.most_us) continue;
        found.push_back({{static_cast<int>(m), h, bringer, held_us}, is_crowded, arrival});
      }
      std::ranges::stable_sort(found, {},
                               [](const Found& f) { return std::pair(f.is_crowded, f.arrival_us); });
      std::size_t crowded = 0;
      for (const Found& f : found) {
        if (detours_of_[m].size() == kMostDetours || (f.is_crowded && crowded++ == kMostCrowdedDetours))
          break;
        const auto d = static_cast<int>(built_.detours.size());
        detours_of_[m].push_back(d);
        built_.detours.push_back(f.detour);
        for (const HopLink& part : view_.space.hops[index(f.detour.hop)].links) {
          if (!carries_several(part)) rooms_[part.link].detours.emplace_back(d, part.occupied_us(bytes(i)));
        }
      }
    }
  }

  void add_member(std::size_t m) {
    const std::size_t i = index(window_.members[m]);
    const PlannedTransfer& t = transfers_[i];
    const double longest = window_span_us();
    if (!detours_of_[m].empty()) add_detours(row(-kInfinity, 1, {}), m, 1);
    // It starts when its source holds the chunk, and arrives its duration later, if it takes no detour.
    if (t.cause >= 0 && member_of_[index(t.cause)] >= 0) {
      const auto source = static_cast<std::size_t>(member_of_[index(t.cause)]);
      add_detours(row(0, kInfinity, {{start_of(m), 1}, {arrival_of(source), -1}}), m, longest);
    } else {
      const double held = t.cause < 0 ? view_.space.demand.ready_us(t.chunk) : arrival_us(index(t.cause));
      add_detours(row(held, kInfinity, {{start_of(m), 1}}), m, longest);
    }
    if (t.copy_of >= 0) {
      // They start together.
      const auto original = static_cast<std::size_t>(member_of_[index(t.copy_of)]);
      add_detours(row(0, kInfinity, {{start_of(m), 1}, {start_of(original), -1}}), m, longest);
      add_detours(row(0, kInfinity, {{start_of(original), 1}, {start_of(m), -1}}), m, longest);
    }
    const double duration = view_.space.duration_us(t);
    add_detours(row(duration, kInfinity, {{arrival_of(m), 1}, {start_of(m), -1}}), m, longest);
    // What follows the window.
    double due = view_.is_wanted[i] != 0 ? finish_us_ : kInfinity;
    for (const int child : view_.children[i]) {
      if (member_of_[index(child)] < 0) due = std::min(due, latest_us(index(child)));
    }
    if (std::isfinite(due)) row(-kInfinity, due, {{arrival_of(m), 1}, {0, 1}});
  }

  double window_span_us() const {
    return 2 * (std::min(window_.until_us, finish_us_) - window_.from_us) + view_.most_us;
  }

  void add_link(LinkId link, const Room& room) {
    // Members that stay follow each other.
    for (std::size_t k = 0; k < room.members.size(); ++k) {
      const auto i = index(room.members[k]);
      const auto m = static_cast<std::size_t>(member_of_[i]);
      const HopLink& part = part_of(i, link);
      const double offset = part.offset_us_of(bytes(i));
      if (k == 0) row(room.from_us - offset, kInfinity, {{start_of(m), 1}});
      if (k + 1 == room.members.size()) continue;
      const auto j = index(room.members[k + 1]);
      const double occupied = part.occupied_us(bytes(i));
      const int r = row(offset + occupied - part_of(j, link).offset_us_of(bytes(j)), kInfinity,
                        {{start_of(static_cast<std::size_t>(member_of_[j])), 1}, {start_of(m), -1}});
      add_detours(r, m, occupied);
    }
    if (!std::isfinite(room.until_us)) return;
    // Free for what follows: all together, and after the last member.
    int gain = 0;  // column
    if (!room.members.empty()) {
      gain = model().num_columns();
      add_column(0, 0, view_.most_us, -kWorthOfLinks / static_cast<double>(rooms_.size()));
      row(0, kInfinity, {{gain, 1}, {0, -1}});
      const auto i = index(room.members.back());
      const auto m = static_cast<std::size_t>(member_of_[i]);
      const HopLink& part = part_of(i, link);
      const double occupied = part.occupied_us(bytes(i));
      const int r = row(-kInfinity, room.until_us - part.offset_us_of(bytes(i)) - occupied,
                        {{start_of(m), 1}, {gain, 1}});
      add_detours(r, m, -occupied);
    }
    if (room.detours.empty()) return;
    const int r = row(-kInfinity, room.until_us - room.from_us - room.members_us, {{gain, 1}});
    std::map<int, double> takes;
    for (const auto& [d, occupied] : room.detours) takes[d] += occupied;
    for (const int i : room.members) {
      const auto m = index(member_of_[index(i)]);
      const double occupied = part_of(index(i), link).occupied_us(bytes(index(i)));
      for (const int d : detours_of_[m]) takes[d] -= occupied;
    }
    for (const auto& [d, occupied] : takes) model().add_entry(r, built_.first_detour + d, occupied);
  }

  const HopLink& part_of(std::size_t i, LinkId link) const {
    const auto& links = view_.space.hop(transfers_[i]).links;
    return *std::ranges::find(links, link, &HopLink::link);
  }

  void add_detour(std::size_t d) {
    const Detour& detour = built_.detours[d];
    const auto m = static_cast<std::size_t>(detour.member);
    const int column = built_.first_detour + static_cast<int>(d);
    const double duration = view_.space.hops[index(detour.hop)].duration_us(bytes(index(window_.members[m])));
    const double longest = window_span_us();
    if (detour.cause >= 0 && member_of_[index(detour.cause)] >= 0) {
      const auto source = static_cast<std::size_t>(member_of_[index(detour.cause)]);
      row(duration - longest, kInfinity, {{arrival_of(m), 1}, {arrival_of(source), -1}, {column, -longest}});
    }
    const double arrival = detour.from_us + duration;
    if (detour.cause < 0 || member_of_[index(detour.cause)] < 0)
      row(arrival - longest, kInfinity, {{arrival_of(m), 1}, {column, -longest}});
  }

  const PlanView& view_;
  const Window& window_;
  const std::vector<PlannedTransfer>& transfers_;
  const double finish_us_;
  std::vector<int> member_of_;
  WindowModel built_;
  std::map<LinkId, Room> rooms_;
  std::vector<std::vector<int>> detours_of_;
};

}  // namespace

WindowChooser::WindowChooser(const SurveyedPlan& plan) : plan_(plan) {
  for (std::size_t i = 0; i < plan.plan.transfers.size(); ++i)
    by_latest_start_.push_back(static_cast<int>(i));
  std::ranges::stable_sort(by_latest_start_, {}, [&](int i) { return plan.latest_start_us[index(i)]; });
}

Window WindowChooser::from(double from_us, std::size_t most) const {
  Window window{.from_us = from_us, .until_us = kInfinity};
  for (const int i : by_latest_start_) {
    if (plan_.plan.transfers[index(i)].start_us < from_us) continue;
    if (window.members.size() == most) {
      window.until_us = plan_.latest_start_us[index(i)];
      break;
    }
    window.members.push_back(i);
  }
  // Those that can start as late as the first one that is left out are no members either.
  while (!window.members.empty() && plan_.latest_start_us[index(window.members.back())] >= window.until_us)
    window.members.pop_back();
  return window;
}

PlanView::PlanView(const SurveyedPlan& surveyed_plan, const PlanSpace& plan_space, double most)
    : surveyed(surveyed_plan), space(plan_space), most_us(most), gpus_(plan_space.topology->num_gpus()) {
  const auto& transfers = surveyed.plan.transfers;
  on_link.resize(space.topology->num_links());
  children.resize(transfers.size());
  is_wanted.resize(transfers.size());
  is_free.assign(transfers.size(), 1);
  std::vector<int> listed(space.topology->num_links(), -1);  // an original and its copies stand in a row
  bringer_.assign(space.demand.num_chunks() * gpus_, -2);
  std::vector<char> wanted(bringer_.size(), 0);
  for (std::size_t c = 0; c < space.demand.num_chunks(); ++c) {
    bringer_[c * gpus_ + space.demand.origin(ChunkId{c}).index()] = -1;
    for (const GpuId d : space.demand.destinations(ChunkId{c})) wanted[c * gpus_ + d.index()] = 1;
  }
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const PlannedTransfer& t = transfers[i];
    const std::size_t at = t.chunk.index() * gpus_ + space.hop(t).dst.index();
    bringer_[at] = static_cast<int>(i);
    is_wanted[i] = wanted[at];
    if (t.cause >= 0) children[index(t.cause)].push_back(static_cast<int>(i));
    const int original = t.copy_of >= 0 ? t.copy_of : static_cast<int>(i);
    for (const HopLink& part : space.hop(t).links) {
      if (carries_several(part)) continue;
      int& last = listed[part.link.index()];
      const bool is_shared = last >= 0 && (transfers[index(last)].copy_of == original || last == original);
      if (is_shared) {
        is_free[index(last)] = 0;
        continue;
      }
      last = static_cast<int>(i);
      on_link[part.link.index()].push_back(last);
    }
  }
  for (std::vector<int>& those : on_link)
    std::ranges::stable_sort(those, {}, [&](int i) { return surveyed.latest_start_us[index(i)]; });
}

WindowModel window_model(const PlanView& view, const Window& window) {
  return Builder(view, window).build();
}

}  // namespace rondo
