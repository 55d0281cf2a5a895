#include "search_state.hpp"

#include <algorithm>
#include <cmath>

namespace rondo {

auto members_of(SameAs<Schedule> auto& s) {
  return std::tie(s.finish_us, s.sends);
}
auto members_of(SameAs<EngineResult> auto& r) {
  return std::tie(r.schedule, r.metrics, r.remarks, r.limits_hit);
}
auto members_of(SameAs<SearchState> auto& s) {
  return std::tie(s.batches, s.idle_batches, s.work, s.trials, s.best);
}

double SearchState::best_finish_us() const {
  return best < trials.size() ? trials[best].finish_us : kInfinity;
}

std::vector<Trial> best_by_engine(const std::vector<Trial>& trials) {
  std::map<std::size_t, Trial> best;
  for (const Trial& trial : trials) {
    if (!std::isfinite(trial.finish_us)) continue;
    const auto entry = best.try_emplace(trial.candidate.engine, trial).first;
    if (trial.finish_us < entry->second.finish_us) entry->second = trial;
  }
  std::vector<Trial> result;
  for (auto& [engine, trial] : best) result.push_back(std::move(trial));
  return result;
}

std::map<int, SynthesisResult::Trade> best_by_chunks(const std::vector<Trial>& trials) {
  std::map<int, SynthesisResult::Trade> best;
  for (const Trial& trial : trials) {
    if (!std::isfinite(trial.finish_us)) continue;
    const SynthesisResult::Trade trade{trial.finish_us, trial.sends, trial.most_sends_on_a_link};
    const auto entry = best.try_emplace(trial.candidate.chunks, trade).first;
    if (trade.finish_us < entry->second.finish_us) entry->second = trade;
  }
  return best;
}

std::size_t most_sends_on_a_link(const Schedule& schedule, const Topology& topology) {
  std::vector<std::size_t> count(topology.num_links(), 0);
  for (const Send& send : schedule.sends) ++count[send.link.index()];
  return *std::ranges::max_element(count);
}

Bytes pack_result(const EngineResult& result) {
  return to_message(result);
}

EngineResult unpack_result(const Bytes& bytes) {
  return from_message<EngineResult>(bytes);
}

std::vector<std::size_t> best_improvable(const std::vector<Trial>& trials) {
  std::map<int, std::size_t> best;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (!trials[i].improvable || !std::isfinite(trials[i].finish_us)) continue;
    const auto [known, is_new] = best.try_emplace(trials[i].candidate.chunks, i);
    if (!is_new && trials[i].finish_us < trials[known->second].finish_us) known->second = i;
  }
  std::vector<std::size_t> positions;
  for (const auto& [chunks, i] : best) positions.push_back(i);
  return positions;
}

Bytes pack_search(const SearchState& state, const Bytes& best) {
  MessageWriter message;
  message.write(state);
  message.write(best);
  return message.take();
}

PackedSearch unpack_search(const Bytes& bytes) {
  MessageReader message(bytes);
  PackedSearch packed;
  Bytes best;
  message.read(packed.state);
  message.read(best);
  if (!best.empty()) packed.best = std::make_shared<EngineResult>(unpack_result(best));
  return packed;
}

}  // namespace rondo
