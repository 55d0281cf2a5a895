#include "search_state.hpp"

#include "rondo/parallel/messages.hpp"

namespace rondo {

double SearchState::best_finish_us() const {
  return best < trials.size() ? trials[best].finish_us : kInfinity;
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

Bytes pack_search(const SearchState& state, const Bytes& best) {
  MessageWriter message;
  message.put(state.batches);
  message.put(state.idle_batches);
  message.put(state.work);
  message.put(state.best);
  message.put(state.trials.size());
  for (const Trial& trial : state.trials) {
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
  for (auto n = message.get<std::size_t>(); n > 0; --n) {
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
    state.trials.push_back(std::move(trial));
  }
  const Bytes best = message.get_all<Bytes>();
  if (!best.empty()) packed.best = std::make_shared<const EngineResult>(unpack_result(best));
  return packed;
}

}  // namespace rondo
