#include "search_state.hpp"

#include <cmath>

namespace rondo {

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

Bytes pack_result(const EngineResult& result) {
  MessageWriter message;
  message.put(result.schedule->finish_us);
  message.put_all(result.schedule->sends);
  message.put_all(result.moves);
  message.put(result.figures.size());
  for (const auto& [name, value] : result.figures) {
    message.put_all(name);
    message.put(value);
  }
  for (const auto& texts : {result.remarks, result.limits_hit}) {
    message.put(texts.size());
    for (const std::string& text : texts) message.put_all(text);
  }
  return message.take();
}

EngineResult unpack_result(const Bytes& bytes) {
  MessageReader message(bytes);
  EngineResult result;
  result.schedule.emplace();
  result.schedule->finish_us = message.get<double>();
  result.schedule->sends = message.get_all<std::vector<Send>>();
  result.moves = message.get_all<std::vector<Move>>();
  for (auto n = message.get<std::size_t>(); n > 0; --n) {
    const auto name = message.get_all<std::string>();
    result.figures[name] = message.get<double>();
  }
  for (auto* texts : {&result.remarks, &result.limits_hit}) {
    for (auto n = message.get<std::size_t>(); n > 0; --n) texts->push_back(message.get_all<std::string>());
  }
  return result;
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

void put_trial(MessageWriter& message, const Trial& trial) {
  message.put(trial.candidate.engine);
  message.put(trial.candidate.chunks);
  message.put_all(trial.candidate.policy);
  message.put(trial.candidate.seed);
  message.put(trial.candidate.work);
  message.put(trial.finish_us);
  message.put(trial.sends);
  message.put(trial.most_sends_on_a_link);
  message.put(trial.improvable);
}

Trial get_trial(MessageReader& message) {
  Trial trial;
  trial.candidate.engine = message.get<std::size_t>();
  trial.candidate.chunks = message.get<int>();
  trial.candidate.policy = message.get_all<std::string>();
  trial.candidate.seed = message.get<std::uint64_t>();
  trial.candidate.work = message.get<double>();
  trial.finish_us = message.get<double>();
  trial.sends = message.get<std::size_t>();
  trial.most_sends_on_a_link = message.get<std::size_t>();
  trial.improvable = message.get<bool>();
  return trial;
}

Bytes pack_search(const SearchState& state, const Bytes& best) {
  MessageWriter message;
  message.put(state.batches);
  message.put(state.idle_batches);
  message.put(state.work);
  message.put(state.best);
  message.put(state.trials.size());
  for (const Trial& trial : state.trials) put_trial(message, trial);
  message.put_all(best);
  return message.take();
}

PackedSearch unpack_search(const Bytes& bytes) {
  MessageReader message(bytes);
  PackedSearch packed;
  SearchState& state = packed.state;
  state.batches = message.get<std::size_t>();
  state.idle_batches = message.get<int>();
  state.work = message.get<double>();
  state.best = message.get<std::size_t>();
  for (auto n = message.get<std::size_t>(); n > 0; --n) state.trials.push_back(get_trial(message));
  const Bytes best = message.get_all<Bytes>();
  if (!best.empty()) packed.best = std::make_shared<const EngineResult>(unpack_result(best));
  return packed;
}

}  // namespace rondo
