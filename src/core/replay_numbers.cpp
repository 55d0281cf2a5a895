#include <fmt/format.h>

#include <utility>

#include "replay_internal.hpp"
#include "rondo/core/replay.hpp"

/// Rule 4: what sends of one transfer number have in common.
namespace rondo::replay_internal {
namespace {

class NumberCheck {
 public:
  NumberCheck(const Execution& execution, FirstViolation& first) : execution_(execution), first_(first) {}

  void check(std::span<const std::size_t> transfer) {
    links_.clear();
    begins_us_ = send(*std::ranges::min_element(transfer, {}, [&](std::size_t s) {
                   return send(s).start_us;
                 })).start_us;
    for (std::size_t i = 0, begin = 0; i < transfer.size(); ++i) {
      if (i + 1 < transfer.size() && send(transfer[i + 1]).link == send(transfer[i]).link) continue;
      links_.push_back(transfer.subspan(begin, i + 1 - begin));
      begin = i + 1;
    }
    for (const std::span<const std::size_t> on_link : links_) {
      check_together(on_link);
      check_chunks(links_.front(), on_link);
    }
    check_rates(transfer);
  }

 private:
  const Send& send(std::size_t s) const { return execution_.sends[s]; }

  /// Before all that follows from it.
  template <class Sentence>
  void refuse(std::size_t s, Sentence sentence) {
    first_.offer(begins_us_, 0, send(s),
                 [&] { return "rule 4: " + execution_.describe(s) + " " + sentence(); });
  }

  /// One link, by chunk: each chunk once, all at one time.
  void check_together(std::span<const std::size_t> on_link) {
    const Send& head = send(on_link.front());
    for (std::size_t i = 1; i < on_link.size(); ++i) {
      const Send& other = send(on_link[i]);
      if (other.chunk == send(on_link[i - 1]).chunk)
        refuse(on_link[i], [] { return "goes over its link twice"; });
      if (times_equal(other.start_us, head.start_us) && times_equal(other.end_us, head.end_us) &&
          times_equal(other.arrival_us, head.arrival_us)) {
        continue;
      }
      refuse(on_link[i], [&] {
        return fmt::format(
            "to {} us, arrival {} us, does not go together with chunk {}, from {} to {} us, arrival {} us",
            other.end_us, other.arrival_us, head.chunk.value, head.start_us, head.end_us, head.arrival_us);
      });
    }
  }

  /// Two links, by chunk, carry the same chunks.
  void check_chunks(std::span<const std::size_t> a, std::span<const std::size_t> b) {
    const auto chunk = [&](std::size_t s) { return send(s).chunk; };
    if (std::ranges::equal(a, b, {}, chunk, chunk)) return;
    for (const auto& both : {std::pair(a, b), std::pair(b, a)}) {
      const auto& other = both.second;
      for (const std::size_t s : both.first) {
        if (std::ranges::binary_search(other, send(s).chunk, {}, chunk)) continue;
        refuse(s, [&] {
          return fmt::format("does not go over link {}: all links of a transfer carry the same chunks",
                             send(other.front()).link.value);
        });
      }
    }
  }

  void check_rates(std::span<const std::size_t> transfer) {
    const Send& head = send(transfer.front());
    const auto rate = [](const Send& s) {
      return s.has_rate() ? fmt::format("rate_GBps {}", s.rate_GBps) : std::string("no rate_GBps");
    };
    for (const std::size_t s : transfer) {
      if (!send(s).has_rate() && !head.has_rate()) continue;
      if (std::abs(send(s).rate_GBps - head.rate_GBps) <= 1e-9 * head.rate_GBps) continue;
      refuse(s, [&] {
        return fmt::format("has {}, chunk {} over link {} has {}: a transfer has one rate", rate(send(s)),
                           head.chunk.value, head.link.value, rate(head));
      });
    }
  }

  const Execution& execution_;
  FirstViolation& first_;
  std::vector<std::span<const std::size_t>> links_;
  double begins_us_ = 0;  ///< the transfer
};

}  // namespace

Numbered check_numbers(const Execution& execution, FirstViolation& first) {
  Numbered numbered;
  for (std::size_t s = 0; s < execution.sends.size(); ++s) {
    if (execution.sends[s].transfer != kNoTransfer) numbered.sends.push_back(s);
  }
  // All sends are sorted by chunk already, so those of a number and link stay so.
  std::ranges::stable_sort(numbered.sends, {}, [&](std::size_t s) {
    return std::pair(execution.sends[s].transfer, execution.sends[s].link);
  });
  const auto number = [&](std::size_t i) { return execution.sends[numbered.sends[i]].transfer; };
  for (std::size_t i = 0; i < numbered.sends.size(); ++i) {
    if (i == 0 || number(i) != number(i - 1)) numbered.begin.push_back(i);
  }
  numbered.begin.push_back(numbered.sends.size());
  NumberCheck check(execution, first);
  for (std::size_t k = 0; k < numbered.count(); ++k) check.check(numbered[k]);
  return numbered;
}

}  // namespace rondo::replay_internal
