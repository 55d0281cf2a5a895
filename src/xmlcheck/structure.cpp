#include <algorithm>
#include <map>
#include <tuple>

#include "rondo/core/error.hpp"
#include "stages.hpp"

namespace rondo::xmlcheck {
namespace {

using msccl::Buffer;
using msccl::Gpu;
using msccl::place;
using msccl::Program;
using msccl::Range;
using msccl::Step;
using msccl::StepType;
using msccl::ThreadBlock;

/// Beyond these the symbolic execution would take gigabytes. A small file may ask for less: what the steps of
/// an executor's program can fill.
constexpr std::int64_t kMaxChunks = 50'000'000;
constexpr std::int64_t kMaxMoves = 500'000'000;
constexpr std::int64_t kFreeChunks = 1'000'000;
constexpr std::int64_t kFreeMoves = 10'000'000;
constexpr std::int64_t kPerStep = 256;  // executors take at most 72 chunks in a step

class StructureCheck {
 public:
  StructureCheck(const Program& program, Findings& findings) : program_(program), findings_(findings) {}

  void run() {
    check_algo();
    for (int g = 0; g < program_.num_gpus(); ++g) check_gpu(g);
    if (!findings_.any()) check_size();
  }

 private:
  const Gpu& gpu(int g) const { return program_.gpus[static_cast<std::size_t>(g)]; }

  void check_algo() {
    if (!program_.in_place && !program_.out_of_place) {
      findings_.add("algo", "inplace and outofplace are both 0: no executor would ever use it");
    }
    if (program_.max_bytes != 0 && program_.max_bytes < program_.min_bytes) {
      findings_.add("algo", "maxBytes is {}, less than minBytes {}", program_.max_bytes, program_.min_bytes);
    }
    if (program_.chunks_per_loop % static_cast<int>(program_.coll->num_parts(program_.gpus.size())) != 0) {
      findings_.add("algo", "nchunksperloop is {}, which {} GPUs do not share evenly in {}",
                    program_.chunks_per_loop, program_.num_gpus(), to_string(program_.coll));
    }
  }

  void check_gpu(int g) {
    const msccl::BufferChunks sizes = msccl::buffer_chunks(program_, g);
    const auto check_buffer = [&](const char* name, int chunks, int expected) {
      if (chunks != 0 && chunks != expected) {
        findings_.add(place(g), "{} is {}, but {} with nchunksperloop {} on {} GPUs has {} (or 0)", name,
                      chunks, to_string(program_.coll), program_.chunks_per_loop, program_.num_gpus(),
                      expected);
      }
    };
    check_buffer("i_chunks", gpu(g).input_chunks, sizes.input);
    check_buffer("o_chunks", gpu(g).output_chunks, sizes.output);
    std::map<std::tuple<bool, int, int>, int> owner;
    for (int t = 0; t < static_cast<int>(gpu(g).tbs.size()); ++t) {
      const ThreadBlock& tb = gpu(g).tbs[static_cast<std::size_t>(t)];
      check_peer(g, t, "send", tb.send_peer);
      check_peer(g, t, "recv", tb.recv_peer);
      const bool has_peer = tb.send_peer >= 0 || tb.recv_peer >= 0;
      if (tb.channel >= program_.num_channels || (has_peer && tb.channel < 0)) {
        findings_.add(place(g, t), "chan is {}, but nchannels is {}: 0 to {} are there", tb.channel,
                      program_.num_channels, program_.num_channels - 1);
      }
      for (const bool sending : {true, false}) {
        const int peer = sending ? tb.send_peer : tb.recv_peer;
        if (peer < 0) continue;
        const auto [other, is_first] = owner.try_emplace({sending, peer, tb.channel}, t);
        if (!is_first) {
          findings_.add(place(g, t), "tb {} owns the connection {} gpu {} on channel {} already",
                        other->second, sending ? "to" : "from", peer, tb.channel);
        }
      }
      for (int s = 0; s < static_cast<int>(tb.steps.size()); ++s) check_step(g, t, s);
    }
  }

  void check_peer(int g, int t, const char* name, int peer) {
    if (peer >= program_.num_gpus()) {
      findings_.add(place(g, t), "{} is {}, but there are GPUs 0 to {}", name, peer, program_.num_gpus() - 1);
    } else if (peer == g) {
      findings_.add(place(g, t), "{} is {}, the GPU itself", name, peer);
    }
  }

  void check_step(int g, int t, int s) {
    const ThreadBlock& tb = gpu(g).tbs[static_cast<std::size_t>(t)];
    const Step& step = tb.steps[static_cast<std::size_t>(s)];
    const std::string where = place(g, t, s);
    if (msccl::sends(step.type) && tb.send_peer < 0) {
      findings_.add(where, "type {} sends, but the threadblock's send is -1", to_string(step.type));
    }
    if (msccl::receives(step.type) && tb.recv_peer < 0) {
      findings_.add(where, "type {} receives, but the threadblock's recv is -1", to_string(step.type));
    }
    if (step.type != StepType::nop && step.count < 1) {
      findings_.add(where, "cnt is {}, but has to be at least 1", step.count);
    }
    if (msccl::reads_source(step.type)) check_range(g, where, "src", step.src, step.count);
    if (msccl::writes_destination(step.type)) check_range(g, where, "dst", step.dst, step.count);
    const bool local = step.type == StepType::copy || step.type == StepType::reduce;
    if (local && step.src != step.dst && step.src.buffer == step.dst.buffer &&
        std::abs(step.src.offset - step.dst.offset) < step.count) {
      findings_.add(where, "source and destination overlap: {}[{}] and {}[{}], {} chunks",
                    to_string(step.src.buffer), step.src.offset, to_string(step.dst.buffer), step.dst.offset,
                    step.count);
    }
    if (step.dependency) check_dependency(g, t, where, *step.dependency);
    if (step.type == StepType::nop) check_nop(tb, s, where);
  }

  void check_range(int g, const std::string& where, const char* name, const Range& range, int count) {
    const int chunks = range.buffer == Buffer::input    ? gpu(g).input_chunks
                       : range.buffer == Buffer::output ? gpu(g).output_chunks
                                                        : gpu(g).scratch_chunks;
    if (range.offset < 0 || count > chunks - range.offset) {
      findings_.add(where, "{} is {} chunks from {}[{}], but {} has {}", name, count, to_string(range.buffer),
                    range.offset, to_string(range.buffer), chunks);
    }
  }

  void check_dependency(int g, int t, const std::string& where, const msccl::Dependency& dependency) {
    if (dependency.tb >= static_cast<int>(gpu(g).tbs.size())) {
      findings_.add(where, "depid is {}, but the GPU has {} threadblocks", dependency.tb, gpu(g).tbs.size());
      return;
    }
    if (dependency.tb == t) {
      findings_.add(where, "depid is {}, its own threadblock, whose steps are in order anyway",
                    dependency.tb);
      return;
    }
    const auto& steps = gpu(g).tbs[static_cast<std::size_t>(dependency.tb)].steps;
    if (dependency.step >= static_cast<int>(steps.size())) {
      findings_.add(where, "deps is {}, but tb {} has {} steps", dependency.step, dependency.tb,
                    steps.size());
      return;
    }
    const Step& awaited = steps[static_cast<std::size_t>(dependency.step)];
    if (awaited.type == StepType::nop) {
      findings_.add(where, "waits for tb {} step {}, a nop, which signals no completion", dependency.tb,
                    dependency.step);
    } else if (!awaited.has_dependents) {
      findings_.add(where, "waits for tb {} step {}, whose hasdep is 0: it signals no completion",
                    dependency.tb, dependency.step);
    }
  }

  void check_nop(const ThreadBlock& tb, int s, const std::string& where) {
    if (!tb.steps[static_cast<std::size_t>(s)].dependency) {
      findings_.add(where, "a nop without a dependency");
    }
    const auto next = std::find_if(tb.steps.begin() + s, tb.steps.end(),
                                   [](const Step& step) { return step.type != StepType::nop; });
    if (next == tb.steps.end()) {
      findings_.add(where, "a nop at the end of its threadblock, with no step that its dependency is for");
    } else if (!next->dependency) {
      findings_.add(where, "a nop before step {}, which has to carry a dependency itself",
                    next - tb.steps.begin());
    }
  }

  void check_size() const {
    std::int64_t chunks = 0, moves = 0, steps = 0;
    for (int g = 0; g < program_.num_gpus(); ++g) {
      const msccl::BufferChunks sizes = msccl::buffer_chunks(program_, g);
      chunks += std::int64_t{sizes.input} + sizes.output + gpu(g).scratch_chunks;
      for (const ThreadBlock& tb : gpu(g).tbs) {
        steps += std::ssize(tb.steps);
        for (const Step& step : tb.steps) moves += step.type == StepType::nop ? 0 : step.count;
      }
    }
    const std::int64_t max_chunks = std::min(kMaxChunks, kFreeChunks + kPerStep * steps);
    const std::int64_t max_moves = std::min(kMaxMoves, kFreeMoves + kPerStep * steps);
    if (chunks > max_chunks || moves > max_moves) {
      throw Error(ExitCode::unavailable,
                  fmt::format("the buffers have {} chunks and the {} steps move {}; at most {} and {} can be "
                              "checked",
                              chunks, steps, moves, max_chunks, max_moves));
    }
  }

  const Program& program_;
  Findings& findings_;
};

}  // namespace

void check_structure(const Program& program, Findings& findings) {
  StructureCheck(program, findings).run();
}

}  // namespace rondo::xmlcheck
