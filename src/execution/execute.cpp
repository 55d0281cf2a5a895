#include "rondo/execution/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "deal.hpp"
#include "expected.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/stopwatch.hpp"
#include "runner.hpp"

namespace rondo::execution {
namespace {

/// What memory holds before it is written: not what a byte of an input is likely to be, nor zero.
constexpr std::byte kFiller{0xA5};

std::vector<Bytes> fresh_memory(const Program& program, const Deal& deal, int repetition) {
  std::vector<Bytes> memory(program.memory.size());
  for (int g = deal.first_of(deal.rank); g < deal.first_of(deal.rank + 1); ++g) {
    const auto index = static_cast<std::size_t>(g);
    memory[index].assign(program.memory[index], kFiller);
    std::ranges::copy(input_of(program, g, repetition),
                      memory[index].begin() + static_cast<std::ptrdiff_t>(program.input[index].offset));
  }
  return memory;
}

/// The first difference on this rank, or nothing.
std::string difference(const Program& program, const std::vector<Bytes>& memory,
                       const std::vector<ExpectedOutput>& expected) {
  std::string first;
  std::size_t gpus = 0;
  for (std::size_t g = 0; g < expected.size(); ++g) {
    if (expected[g].bytes.empty()) continue;
    const std::string differs = first_difference(
        program, expected[g],
        std::span(memory[g]).subspan(program.output[g].offset, expected[g].bytes.size()), kFiller);
    if (differs.empty()) continue;
    if (gpus++ == 0) first = fmt::format("gpu {}: {}", g, differs);
  }
  return gpus > 1 ? fmt::format("{}; {} GPUs of this rank differ", first, gpus) : first;
}

/// Collective: throws the same error everywhere if any rank has something to say.
void agree(const Communicator& communicator, const std::vector<std::string>& faults) {
  constexpr std::size_t kMost = 5;
  std::string own;
  for (std::size_t i = 0; i < faults.size() && i < kMost; ++i) own += (own.empty() ? "" : "\n  ") + faults[i];
  std::string all;
  for (const Bytes& text : communicator.all_gather(to_bytes(own))) {
    if (!text.empty()) all += (all.empty() ? "" : "\n  ") + to_text(text);
  }
  if (!all.empty()) throw Error(ExitCode::bad_data, all);
}

/// Collective: where every lane of every rank stands.
std::vector<int> all_positions(const Program& program, const Deal& deal, const Communicator& communicator,
                               const std::vector<int>& own) {
  Bytes bytes(own.size() * sizeof(int));
  std::memcpy(bytes.data(), own.data(), bytes.size());
  const std::vector<Bytes> gathered = communicator.all_gather(bytes);
  std::vector<int> all(own.size());
  for (std::size_t l = 0; l < all.size(); ++l) {
    const auto rank = static_cast<std::size_t>(deal.rank_of(program.lanes[l].gpu));
    std::memcpy(&all[l], gathered[rank].data() + l * sizeof(int), sizeof(int));
  }
  return all;
}

void keep_outputs(const Program& program, const Deal& deal, const std::vector<Bytes>& memory,
                  ExecuteResult& result) {
  result.outputs.assign(memory.size(), {});
  for (int g = deal.first_of(deal.rank); g < deal.first_of(deal.rank + 1); ++g) {
    const auto index = static_cast<std::size_t>(g);
    const auto begin = memory[index].begin() + static_cast<std::ptrdiff_t>(program.output[index].offset);
    result.outputs[index].assign(begin, begin + static_cast<std::ptrdiff_t>(program.output[index].bytes));
  }
}

}  // namespace

Bytes input_of(const Program& program, int gpu, int repetition) {
  Bytes input(program.input[static_cast<std::size_t>(gpu)].bytes);
  fill_input(program, {gpu, 0}, input, repetition);
  for (const SameData& same : program.same_data) {
    if (same.place.gpu == gpu)
      fill_input(program, same.as, std::span(input).subspan(same.place.offset, same.bytes), repetition);
  }
  return input;
}

ExecuteResult execute(const Program& program, const Communicator& communicator,
                      const ExecuteOptions& options) {
  const Deal deal{.gpus = program.num_gpus(), .ranks = communicator.size(), .rank = communicator.rank()};
  const auto exchange = make_exchange(communicator);
  ExecuteResult result;
  for (int repetition = 0; repetition < options.repeat; ++repetition) {
    std::vector<Bytes> memory = fresh_memory(program, deal, repetition);
    communicator.barrier();
    const Stopwatch clock;
    const RunOutcome outcome = Runner(program, deal, *exchange, options.slots, memory).run();
    result.seconds += communicator.max(clock.seconds());
    agree(communicator, outcome.faults);
    if (!outcome.finished) {
      throw Error(ExitCode::bad_data,
                  describe_deadlock(program, all_positions(program, deal, communicator, outcome.next),
                                    options.slots));
    }
    result.messages += static_cast<std::int64_t>(communicator.sum(static_cast<double>(outcome.messages)));
    result.bytes += static_cast<std::int64_t>(communicator.sum(static_cast<double>(outcome.bytes)));
    if (options.keep_outputs) keep_outputs(program, deal, memory, result);
    if (!program.knows_result) continue;
    const std::string differs =
        difference(program, memory, expected_outputs(program, deal, repetition, kFiller));
    agree(communicator, differs.empty() ? std::vector<std::string>{} : std::vector<std::string>{differs});
  }
  return result;
}

}  // namespace rondo::execution
