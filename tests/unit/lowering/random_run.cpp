#include "random_run.hpp"

#include <array>
#include <deque>
#include <map>
#include <tuple>

namespace rondo::test {
namespace {

using msccl::Program;
using msccl::Range;
using msccl::Step;
using msccl::StepType;
using msccl::ThreadBlock;
using Numbers = std::vector<std::uint64_t>;

class Run {
 public:
  Run(const Program& program, Random& random) : program_(program), random_(random) {
    for (std::size_t g = 0; g < program.gpus.size(); ++g) {
      const msccl::Gpu& gpu = program.gpus[g];
      buffers_.push_back({});
      buffers_.back()[0].resize(static_cast<std::size_t>(gpu.input_chunks));
      buffers_.back()[1].resize(static_cast<std::size_t>(gpu.output_chunks));
      buffers_.back()[2].resize(static_cast<std::size_t>(gpu.scratch_chunks));
      for (Numbers& buffer : buffers_.back()) {
        for (std::uint64_t& cell : buffer) cell = random_.next();
      }
      Random data(1000 + g);
      for (std::uint64_t& cell : buffers_.back()[0]) cell = data.next();
      done_.emplace_back(gpu.tbs.size(), 0);
      slow_.emplace_back(gpu.tbs.size(), false);
      for (std::size_t t = 0; t < gpu.tbs.size(); ++t) slow_.back()[t] = random.below(3) == 0;
    }
  }

  std::optional<Outputs> outputs() {
    while (!failed_) {
      std::vector<std::pair<std::size_t, std::size_t>> ready, ready_slow;
      for (std::size_t g = 0; g < done_.size(); ++g) {
        for (std::size_t t = 0; t < done_[g].size(); ++t) {
          if (is_ready(g, t)) (slow_[g][t] ? ready_slow : ready).emplace_back(g, t);
        }
      }
      if (ready.empty()) ready = ready_slow;
      if (ready.empty()) break;
      random_.shuffle(std::span(ready));
      const std::size_t steps = 1 + random_.below(ready.size());
      for (std::size_t k = 0; k < steps && !failed_; ++k) execute(ready[k].first, ready[k].second);
    }
    if (failed_ || !is_complete()) return std::nullopt;
    Outputs all;
    for (const auto& buffers : buffers_) all.insert(all.end(), buffers[1].begin(), buffers[1].end());
    return all;
  }

 private:
  using Connection = std::tuple<int, int, int>;

  const ThreadBlock& tb(std::size_t g, std::size_t t) const { return program_.gpus[g].tbs[t]; }

  bool is_ready(std::size_t g, std::size_t t) {
    if (done_[g][t] == tb(g, t).steps.size()) return false;
    const Step& step = tb(g, t).steps[done_[g][t]];
    if (step.dependency) {
      const auto awaited = static_cast<std::size_t>(step.dependency->tb);
      if (awaited >= done_[g].size()) return false;
      if (done_[g][awaited] <= static_cast<std::size_t>(step.dependency->step)) return false;
    }
    return !msccl::receives(step.type) ||
           !fifo_[{tb(g, t).recv_peer, static_cast<int>(g), tb(g, t).channel}].empty();
  }

  std::uint64_t* cell(std::size_t g, const Range& range, int i) {
    Numbers& buffer = buffers_[g][static_cast<std::size_t>(range.buffer)];
    const auto place = static_cast<std::size_t>(range.offset + i);
    failed_ = failed_ || place >= buffer.size();
    return failed_ ? nullptr : &buffer[place];
  }

  void execute(std::size_t g, std::size_t t) {
    const Step& step = tb(g, t).steps[done_[g][t]++];
    if (step.type == StepType::nop) return;
    Numbers data(static_cast<std::size_t>(step.count), 0);
    if (msccl::receives(step.type)) {
      auto& queue = fifo_[{tb(g, t).recv_peer, static_cast<int>(g), tb(g, t).channel}];
      failed_ = failed_ || queue.empty() || queue.front().size() != data.size();
      if (failed_) return;
      data = queue.front();
      queue.pop_front();
    }
    for (int i = 0; i < step.count && !failed_; ++i) {
      std::uint64_t& value = data[static_cast<std::size_t>(i)];
      if (msccl::reads_source(step.type)) {
        if (const std::uint64_t* source = cell(g, step.src, i)) value += *source;
      }
      if (!msccl::writes_destination(step.type)) continue;
      if (std::uint64_t* destination = cell(g, step.dst, i)) {
        *destination = step.type == StepType::reduce ? *destination + value : value;
      }
    }
    if (msccl::sends(step.type)) {
      failed_ = failed_ || tb(g, t).send_peer < 0;
      fifo_[{static_cast<int>(g), tb(g, t).send_peer, tb(g, t).channel}].push_back(data);
    }
  }

  bool is_complete() const {
    for (std::size_t g = 0; g < done_.size(); ++g) {
      for (std::size_t t = 0; t < done_[g].size(); ++t) {
        if (done_[g][t] != tb(g, t).steps.size()) return false;
      }
    }
    return true;
  }

  const Program& program_;
  Random& random_;
  std::vector<std::array<Numbers, 3>> buffers_;  ///< per GPU: input, output, scratch
  std::vector<std::vector<std::size_t>> done_;   ///< per GPU and threadblock
  std::vector<std::vector<bool>> slow_;          ///< threadblocks that the others run ahead of
  std::map<Connection, std::deque<Numbers>> fifo_;
  bool failed_ = false;
};

}  // namespace

std::optional<Outputs> run_at_random(const Program& program, Random& random) {
  return Run(program, random).outputs();
}

}  // namespace rondo::test
