#include "rondo/mscclpp/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "order.hpp"
#include "rondo/core/error.hpp"

namespace rondo::mscclpp {
namespace {

constexpr std::size_t kMostCells = 200'000'000;

/// What a place holds: the sum of the fingerprints of all that was added. Two sums are equal by chance once
/// in 2^128; undefined is zero.
struct Value {
  std::uint64_t low = 0, high = 0;

  bool defined() const { return low != 0 || high != 0; }
  void add(const Value& other) {
    low += other.low;
    high += other.high;
  }
  friend bool operator==(const Value&, const Value&) = default;
};

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

Value input_value(std::size_t gpu, std::size_t cell) {
  const std::uint64_t key = mixed((std::uint64_t{gpu} << 40) + cell);
  return {mixed(key ^ 0x243F6A8885A308D3u), mixed(key ^ 0x13198A2E03707344u) | 1u};
}

struct Access {
  int event = -1;
  bool writes = false;
};

class PlanCheck {
 public:
  PlanCheck(const Unfolded& plan, bool double_scratch, std::vector<Finding>& findings)
      : plan_(plan), double_scratch_(double_scratch), findings_(findings) {}

  /// Stages 2 to 5.
  void run(CheckResult& result) {
    choose_cells();
    Order order(plan_, findings_);
    if (!findings_.empty()) return;
    note_accesses(order);
    if (!findings_.empty() || !order.sort(findings_)) return;
    find_races(order);
    if (!findings_.empty()) return;
    execute(order);
    if (findings_.empty()) compare(result);
  }

 private:
  std::size_t cell(int gpu, std::size_t offset) const {
    return begin_[static_cast<std::size_t>(gpu)] + offset / grain_;
  }

  void find(std::string where, std::string what) { findings_.push_back({std::move(where), std::move(what)}); }

  /// Cells are as long as every boundary in the plan allows.
  void choose_cells() {
    grain_ = plan_.chunk_bytes;
    for (const auto& gpu : plan_.tbs) {
      for (const auto& tb : gpu) {
        for (const Action& action : tb) {
          for (const auto* spans : {&action.sources, &action.targets}) {
            for (const Span& span : *spans) grain_ = std::gcd(grain_, std::gcd(span.offset, span.bytes));
          }
        }
      }
    }
    std::size_t cells = 0;
    for (const Memory& memory : plan_.memory) {
      begin_.push_back(cells);
      cells += memory.bytes / grain_;
    }
    if (cells > kMostCells)
      throw Error(
          ExitCode::unavailable,
          fmt::format("the plan has {} pieces of memory to check; at most {} are", cells, kMostCells));
    accesses_.resize(cells);
    packet_writer_.assign(cells, -1);
    packet_is_read_.assign(cells, 0);
  }

  template <class Visit>
  void for_each_cell(const Span& span, const Visit& visit) const {
    const std::size_t first = cell(span.gpu, span.offset);
    for (std::size_t c = first; c < first + span.bytes / grain_; ++c) visit(c);
  }

  /// A reader of packets comes after who writes them; one that a port sends on needs them there already.
  void note_accesses(Order& order) {
    const auto events = order.events();
    std::vector<char> plain(plan_.memory.size(), 0), packed(plan_.memory.size(), 0);
    for (std::size_t e = 0; e < events.size(); ++e) {
      if (events[e].move == nullptr) continue;
      const int event = static_cast<int>(e);
      for (const Span& span : events[e].move->targets) {
        mark_scratch(span, plain, packed);
        for_each_cell(span, [&](std::size_t c) {
          accesses_[c].push_back({event, true});
          if (!span.packets) return;
          if (packet_writer_[c] >= 0 && findings_.empty())
            find(order.where(event),
                 fmt::format("writes packets that {} writes too: its reader cannot tell them apart",
                             order.where(packet_writer_[c])));
          packet_writer_[c] = event;
        });
      }
    }
    for (std::size_t e = 0; e < events.size(); ++e) {
      if (events[e].move == nullptr) continue;
      const int event = static_cast<int>(e);
      const bool by_port = events[e].move->channel >= 0;
      for (const Span& span : events[e].move->sources) {
        mark_scratch(span, plain, packed);
        int last = -1;
        for_each_cell(span, [&](std::size_t c) {
          if (!span.packets || by_port) {
            accesses_[c].push_back({event, false});
            return;
          }
          const int writer = packet_writer_[c];
          if (writer < 0 && findings_.empty())
            find(order.where(event), "waits for packets that nobody writes");
          if (writer >= 0 && writer != last) order.follow(event, last = writer);
          packet_is_read_[c] = 1;
        });
      }
    }
    for (std::size_t g = 0; g < plain.size(); ++g) {
      if (plain[g] != 0 && packed[g] != 0)
        find(place(static_cast<int>(g)), "scratch holds packets and other data, which lie in the same bytes");
    }
  }

  void mark_scratch(const Span& span, std::vector<char>& plain, std::vector<char>& packed) const {
    const auto g = static_cast<std::size_t>(span.gpu);
    if (span.packets)
      packed[g] = 1;
    else if (span.offset >= plan_.memory[g].scratch)
      plain[g] = 1;
  }

  void find_races(const Order& order) {
    std::vector<int> position(order.events().size());
    for (std::size_t i = 0; i < order.sorted().size(); ++i)
      position[static_cast<std::size_t>(order.sorted()[i])] = static_cast<int>(i);
    for (std::size_t g = 0; g < plan_.memory.size(); ++g) {
      const std::size_t last = begin_[g] + plan_.memory[g].bytes / grain_;
      for (std::size_t c = begin_[g]; c < last; ++c) find_races(order, position, static_cast<int>(g), c);
    }
  }

  void find_races(const Order& order, const std::vector<int>& position, int g, std::size_t c) {
    auto& all = accesses_[c];
    std::ranges::stable_sort(all, {}, [&](const Access& a) {
      return 2 * position[static_cast<std::size_t>(a.event)] + (a.writes ? 1 : 0);
    });
    std::size_t since = 0;  // accesses after the write before the last
    int writer = -1;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Access& access = all[i];
      if (writer >= 0 && writer != access.event) expect(order, writer, access.event, !access.writes, g, c);
      if (!access.writes) continue;
      for (std::size_t j = since; j < i; ++j) {
        if (!all[j].writes && all[j].event != access.event)
          expect(order, all[j].event, access.event, false, g, c);
      }
      since = i + 1;
      writer = access.event;
    }
    // Written for good, and read, before its GPU ends; a port also before the GPU that sends.
    for (const Access& access : all) {
      const Event& event = order.events()[static_cast<std::size_t>(access.event)];
      // Packets of this run and of the one before lie apart where scratch is double.
      const bool lies_apart = double_scratch_ && packet_writer_[c] >= 0;
      if (event.gpu != g && !lies_apart && !order.has_begun(g, access.event))
        find(order.where(access.event),
             fmt::format("uses memory of gpu {}, which may not have begun ({}): wait for a signal", g,
                         place_of(g, c)));
      if (access.writes && packet_is_read_[c] == 0 && !order.is_over(access.event, order.end_of(g), false))
        find(order.where(access.event),
             fmt::format("gpu {} may end before this has come to it ({})", g, place_of(g, c)));
      if (!access.writes && event.move->channel >= 0 &&
          !order.is_over(access.event, order.end_of(event.gpu), false))
        find(order.where(access.event), "its GPU may end before the port has read all of it: flush (pwsf)");
      if (!access.writes && event.gpu != g && !order.is_over(access.event, order.end_of(g), false))
        find(order.where(access.event),
             fmt::format("gpu {} may end before this has been read ({})", g, place_of(g, c)));
    }
  }

  void expect(const Order& order, int earlier, int later, bool visibly, int g, std::size_t c) {
    if (order.is_over(earlier, later, visibly)) return;
    if (by_packets(order, earlier, later, place_in(order, later, c), place_in(order, earlier, c), visibly))
      return;
    find(order.where(later), fmt::format("does not wait for {}, which uses the same memory ({})",
                                         order.where(earlier), place_of(g, c)));
  }

  /// Which piece of what it moves an event has at a place.
  std::size_t place_in(const Order& order, int event, std::size_t c) const {
    const Action& move = *order.events()[static_cast<std::size_t>(event)].move;
    for (const auto* spans : {&move.sources, &move.targets}) {
      for (const Span& span : *spans) {
        const std::size_t first = cell(span.gpu, span.offset);
        if (c >= first && c < first + span.bytes / grain_) return c - first;
      }
    }
    return 0;
  }

  /// A packet is written once its source has been read, and what its reader makes of it is written after
  /// that: piece by piece, whatever the rest of the operations does.
  bool by_packets(const Order& order, int earlier, int later, std::size_t piece, std::size_t earlier_piece,
                  bool visibly) const {
    const Action& move = *order.events()[static_cast<std::size_t>(later)].move;
    if (move.channel >= 0) return false;
    for (const Span& span : move.sources) {
      if (!span.packets) continue;
      const std::size_t c = cell(span.gpu, span.offset) + piece;
      const int writer = packet_writer_[c];
      const std::size_t written = place_in(order, writer, c);
      if (writer == earlier && written == earlier_piece) return true;
      if (order.is_over(earlier, writer, visibly)) return true;
      if (by_packets(order, earlier, writer, written, earlier_piece, visibly)) return true;
    }
    return false;
  }

  std::string place_of(int g, std::size_t c) const {
    const std::size_t offset = (c - begin_[static_cast<std::size_t>(g)]) * grain_;
    const Memory& memory = plan_.memory[static_cast<std::size_t>(g)];
    const bool in_scratch = offset >= memory.scratch;
    const bool in_output = offset >= memory.output && offset < memory.output + memory.output_bytes;
    const std::size_t base = in_scratch  ? (offset >= memory.packets ? memory.packets : memory.scratch)
                             : in_output ? memory.output
                                         : memory.input;
    return fmt::format("chunk {} of buffer {} of gpu {}", (offset - base) / plan_.chunk_bytes,
                       in_scratch  ? "s"
                       : in_output ? "o"
                                   : "i",
                       g);
  }

  void execute(const Order& order) {
    values_.assign(accesses_.size(), {});
    for (std::size_t g = 0; g < plan_.memory.size(); ++g) {
      const Memory& memory = plan_.memory[g];
      for (std::size_t i = 0; i < memory.input_bytes / grain_; ++i)
        values_[begin_[g] + memory.input / grain_ + i] = input_value(g, i);
    }
    std::vector<Value> sum;
    for (const int event : order.sorted()) {
      const Action* move = order.events()[static_cast<std::size_t>(event)].move;
      if (move == nullptr) continue;
      sum.assign(move->sources.front().bytes / grain_, {});
      for (const Span& span : move->sources) {
        std::size_t i = 0;
        for_each_cell(span, [&](std::size_t c) {
          if (!values_[c].defined() && findings_.empty())
            find(order.where(event), "reads what nobody has written: " + place_of(span.gpu, c));
          sum[i++].add(values_[c]);
        });
      }
      for (const Span& span : move->targets) {
        std::size_t i = 0;
        for_each_cell(span, [&](std::size_t c) { values_[c] = sum[i++]; });
      }
    }
  }

  void compare(CheckResult& result) {
    result.knows_result = plan_.collective != Collective::custom;
    if (!result.knows_result) return;
    std::string first;
    const std::size_t roots = plan_.collective->has_root ? plan_.memory.size() : 1;
    for (std::size_t root = 0; root < roots; ++root) {
      const std::string wrong = first_wrong(root);
      if (wrong.empty()) {
        if (plan_.collective->has_root) result.root = static_cast<int>(root);
        return;
      }
      if (first.empty()) first = wrong;
    }
    find("result", roots > 1 ? "right for no root; for root 0: " + first : first);
  }

  std::string first_wrong(std::size_t root) const {
    std::string wrong;
    const std::size_t gpus = plan_.memory.size();
    plan_.collective->for_each_output_part(gpus, root, [&](const OutputPart& to, const InputPart& from) {
      if (!wrong.empty()) return;
      const Memory& memory = plan_.memory[to.gpu];
      const std::size_t cells = memory.output_bytes / plan_.collective->output_parts(gpus) / grain_;
      const std::size_t out = begin_[to.gpu] + memory.output / grain_ + to.part * cells;
      for (std::size_t i = 0; i < cells && wrong.empty(); ++i) {
        Value expected;
        for (std::size_t g = 0; g < gpus; ++g) {
          if (from.gpu == InputPart::kSumOfAll || from.gpu == g)
            expected.add(input_value(g, from.part * cells + i));
        }
        if (values_[out + i] == expected) continue;
        wrong = fmt::format("{} {}", place_of(static_cast<int>(to.gpu), out + i),
                            values_[out + i].defined() ? "holds the wrong data" : "is never written");
      }
    });
    return wrong;
  }

  const Unfolded& plan_;
  bool double_scratch_;
  std::vector<Finding>& findings_;
  std::size_t grain_ = 1;
  std::vector<std::size_t> begin_;             ///< per GPU: its first cell
  std::vector<std::vector<Access>> accesses_;  ///< per cell
  std::vector<int> packet_writer_;             ///< per cell
  std::vector<char> packet_is_read_;           ///< per cell: by who waits for it
  std::vector<Value> values_;                  ///< per cell
};

}  // namespace

CheckResult check(const Plan& plan, bool with_caps, std::size_t max_findings) {
  CheckResult result;
  std::vector<Finding> findings;
  try {
    const Unfolded unfolded = unfold(plan, telling_chunk_bytes(plan));
    if (const auto excess = beyond_caps(plan); excess && with_caps) {
      findings.push_back({"caps", *excess});
    } else {
      PlanCheck(unfolded, plan.double_scratch_buffer, findings).run(result);
    }
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_data) throw;
    const std::string what = error.what();
    const std::size_t colon = what.find(": ");
    findings.push_back({what.substr(0, colon), colon == std::string::npos ? "" : what.substr(colon + 2)});
  }
  result.num_findings = findings.size();
  if (findings.size() > max_findings) findings.resize(max_findings);
  result.findings = std::move(findings);
  return result;
}

}  // namespace rondo::mscclpp
