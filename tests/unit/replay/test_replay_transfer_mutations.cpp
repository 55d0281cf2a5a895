#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "judged_schedules.hpp"
#include "random_transfers.hpp"
#include "rondo/core/units.hpp"

/// Transfers with numbers, rates, message costs and changing bandwidth: every single change of a valid
/// schedule that breaks one of their rules is found.
namespace rondo::test_replay_transfer_mutations {
namespace {

ReplayResult judge(const Scenario& scenario, const std::vector<Send>& sends) {
  const Topology topology(scenario.fabric);
  return judged(topology, custom(topology, scenario.parts), sends);
}

/// A scenario, its sends, and the group to which a change is applied.
struct Subject {
  Scenario scenario;
  std::vector<Send> sends;
  std::size_t g;

  const Group& group() const { return scenario.groups[g]; }
  std::span<Send> sends_of(std::size_t other) {
    std::size_t first = 0;
    for (std::size_t i = 0; i < other; ++i)
      first += scenario.groups[i].chunks.size() * scenario.groups[i].links.size();
    const Group& at = scenario.groups[other];
    return std::span(sends).subspan(first, at.chunks.size() * at.links.size());
  }
  std::span<Send> own_sends() { return sends_of(g); }
  Send& any_send(Random& random) { return own_sends()[random.below(own_sends().size())]; }
  bool has_rate() const { return !std::isnan(group().rate_GBps); }

  /// The same links once more, `later_us` after the group.
  void repeat(double later_us, double rate_GBps) {
    Group copy = group();
    copy.start_us += later_us;
    copy.rate_GBps = rate_GBps;
    copy.is_numbered = true;
    copy.duration_us = scenario.message_us(copy) + transmission_us(copy.bytes, rate_GBps);
    scenario.append(copy, 1000, sends);
  }
  void move_ends(double later_us) {
    for (Send& s : own_sends()) {
      s.end_us += later_us;
      s.arrival_us += later_us;
    }
  }
};

/// False where the subject offers nothing to change.
using Change = std::function<bool(Subject&, Random&)>;

/// A thousand changes that are refused.
void expect_refused(bool with_messages, bool with_steps, const Change& change) {
  constexpr int kWanted = 1000;
  Random random(31);
  int refused = 0;
  for (int tried = 0; refused < kWanted; ++tried) {
    ASSERT_LT(tried, 50 * kWanted) << "only " << refused;
    Subject subject{random_transfers(random, with_messages, with_steps), {}, 0};
    subject.sends = subject.scenario.sends();
    subject.g = random.below(subject.scenario.groups.size());
    const ReplayResult valid = judge(subject.scenario, subject.sends);
    ASSERT_TRUE(valid.valid()) << "scenario " << tried << ": " << *valid.violation;
    if (!change(subject, random)) continue;
    const ReplayResult changed = judge(subject.scenario, subject.sends);
    ASSERT_FALSE(changed.valid()) << "scenario " << tried;
    ++refused;
    random.shuffle(std::span(subject.sends));
    const ReplayResult shuffled = judge(subject.scenario, subject.sends);
    // Malformed sends are reported as met.
    if (changed.violation->starts_with("rule 1")) {
      ASSERT_EQ(shuffled.violation, changed.violation);
    }
  }
}

TEST(TransferMutations, ANumberIsTakenAway) {
  expect_refused(true, false, [](Subject& subject, Random& random) {
    if (!subject.group().is_numbered || subject.own_sends().size() < 2) return false;
    subject.any_send(random).transfer = kNoTransfer;
    return true;
  });
}

TEST(TransferMutations, ANumberIsChanged) {
  expect_refused(true, false, [](Subject& subject, Random& random) {
    if (subject.own_sends().size() < 2) return false;
    subject.any_send(random).transfer = static_cast<int>(random.below(12));
    return std::ranges::any_of(subject.own_sends(), [&](const Send& s) {
      return s.transfer != subject.own_sends().front().transfer;
    });
  });
}

TEST(TransferMutations, TwoTransfersGetOneNumber) {
  expect_refused(true, false, [](Subject& subject, Random& random) {
    const std::size_t other = random.below(subject.scenario.groups.size());
    if (other == subject.g) return false;
    for (const std::size_t g : {subject.g, other}) {
      for (Send& s : subject.sends_of(g)) s.transfer = 77;
    }
    return true;
  });
}

TEST(TransferMutations, AChunkIsLeftOutOnALink) {
  expect_refused(true, false, [](Subject& subject, Random& random) {
    if (subject.group().chunks.size() < 2) return false;
    const Send* const left_out = &subject.any_send(random);
    subject.sends.erase(subject.sends.begin() + (left_out - subject.sends.data()));
    return true;
  });
}

TEST(TransferMutations, OneSendHasAnotherRate) {
  expect_refused(true, false, [](Subject& subject, Random& random) {
    if (subject.own_sends().size() < 2) return false;
    Send& send = subject.any_send(random);
    send.rate_GBps = subject.has_rate() ? send.rate_GBps * (0.2 + 0.79 * random.unit()) : 0.5;
    return true;
  });
}

TEST(TransferMutations, ARateContradictsTheEnds) {
  expect_refused(true, false, [](Subject& subject, Random& random) {
    if (!subject.has_rate()) return false;
    const double factor = 0.2 + 0.79 * random.unit();
    for (Send& s : subject.own_sends()) s.rate_GBps *= factor;
    return true;
  });
}

TEST(TransferMutations, ARateIsAboveTheBandwidth) {
  expect_refused(true, false, [](Subject& subject, Random& random) {
    const Group& group = subject.group();
    if (!group.is_numbered) return false;
    const double rate = subject.scenario.least_GBps(group) * (1.0001 + random.unit());
    const double end_us = subject.scenario.message_us(group) + transmission_us(group.bytes, rate);
    subject.move_ends(end_us - group.duration_us);
    for (Send& s : subject.own_sends()) s.rate_GBps = rate;
    return true;
  });
}

TEST(TransferMutations, RatesSumToMoreThanALinkHas) {
  expect_refused(false, false, [](Subject& subject, Random& random) {
    const Group& group = subject.group();
    const double least = subject.scenario.least_GBps(group);
    const double rate = subject.has_rate() ? group.rate_GBps : least;
    const bool too_much = std::ranges::any_of(
        group.links, [&](int l) { return rate + least > 1.001 * subject.scenario.link(l).bandwidth_GBps; });
    if (!too_much) return false;
    subject.repeat(0.99 * random.unit() * group.duration_us, least);
    return true;
  });
}

TEST(TransferMutations, MessageCostsOverlap) {
  expect_refused(true, false, [](Subject& subject, Random& random) {
    const Group& group = subject.group();
    const double message_us = subject.scenario.message_us(group);
    if (message_us == 0) return false;
    subject.repeat(0.99 * random.unit() * message_us, 1e-3 * subject.scenario.least_GBps(group));
    return true;
  });
}

TEST(TransferMutations, AMessageCostIsNotPaid) {
  expect_refused(true, false, [](Subject& subject, Random& random) {
    const double message_us = subject.scenario.message_us(subject.group());
    if (message_us == 0) return false;
    subject.move_ends(-message_us * (0.001 + 0.999 * random.unit()));
    return true;
  });
}

TEST(TransferMutations, AnEndContradictsChangingBandwidth) {
  for (const bool with_messages : {false, true}) {
    expect_refused(with_messages, true, [](Subject& subject, Random& random) {
      const double most_us = subject.group().duration_us;
      subject.move_ends(
          (random.below(2) == 0 ? 1e-3 + 5 * random.unit() : -1e-3 - 0.9 * random.unit() * most_us));
      return true;
    });
  }
}

TEST(TransferMutations, ChangesOfTheBandwidthAreIgnored) {
  expect_refused(true, true, [](Subject& subject, Random&) {
    const Group& group = subject.group();
    double rate = 1e9;
    for (std::size_t i = 0; i < group.links.size(); ++i)
      rate =
          std::min(rate, subject.scenario.bandwidth_at(group.links[i], group.start_us + group.offsets_us[i]));
    if (rate == 0) return false;
    const double duration_us = subject.scenario.message_us(group) + transmission_us(group.bytes, rate);
    if (std::abs(duration_us - group.duration_us) < 1e-3) return false;
    subject.move_ends(duration_us - group.duration_us);
    return true;
  });
}

TEST(TransferMutations, ALinkGoesDownUnderWay) {
  for (const bool with_messages : {false, true}) {
    expect_refused(with_messages, false, [](Subject& subject, Random& random) {
      const Group& group = subject.group();
      const std::size_t i = random.below(group.links.size());
      const double message_us = subject.scenario.message_us(group);
      const double down_us = group.start_us + group.offsets_us[i] + message_us +
                             0.99 * random.unit() * (group.duration_us - message_us);
      Link& link = subject.scenario.fabric.links[static_cast<std::size_t>(group.links[i])];
      const double bandwidth = link.bandwidth_GBps;
      link.bandwidth_steps = {{0, bandwidth}};
      if (down_us == 0) return false;
      link.bandwidth_steps.push_back({down_us, 0});
      link.bandwidth_steps.push_back({down_us + 1, bandwidth});
      return true;
    });
  }
}

}  // namespace
}  // namespace rondo::test_replay_transfer_mutations
