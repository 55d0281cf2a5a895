#include <map>

#include "stages.hpp"

namespace rondo::xmlcheck {

using msccl::Executor;
using msccl::place;
using msccl::Program;
using msccl::ThreadBlock;

namespace {

/// `figure` of what `where` has, against the cap.
void hold(Findings& findings, const std::string& where, std::string_view executor, const char* what,
          std::int64_t figure, std::int64_t cap) {
  if (figure > cap) findings.add(where, "{} {}, but {} takes at most {}", figure, what, executor, cap);
}

void check_tb(const Program& program, const Executor& executor, int g, int t, Findings& findings) {
  const ThreadBlock& tb = program.gpus[static_cast<std::size_t>(g)].tbs[static_cast<std::size_t>(t)];
  hold(findings, place(g, t), executor.name, "steps", std::ssize(tb.steps), executor.steps);
  for (int s = 0; const msccl::Step& step : tb.steps) {
    const std::string where = place(g, t, s++);
    hold(findings, where, executor.name, "chunks in a step", step.count, executor.count);
    hold(findings, where, executor.name, "as srcoff", step.src.offset, executor.offset);
    hold(findings, where, executor.name, "as dstoff", step.dst.offset, executor.offset);
    if (step.dependency) {
      hold(findings, where, executor.name, "as depid", step.dependency->tb, executor.dependency_tb);
    }
  }
}

}  // namespace

void check_caps(const Program& program, const Executor& executor, Findings& findings) {
  const auto spelled = msccl::spelling(executor, program.coll);
  if (!spelled) {
    findings.add("algo", "coll is '{}', which {} does not know", program.coll_spelling, executor.name);
  } else if (*spelled != program.coll_spelling) {
    findings.add("algo", "coll is '{}', which {} spells '{}'", program.coll_spelling, executor.name,
                 *spelled);
  }
  hold(findings, "algo", executor.name, "GPUs", program.num_gpus(), executor.gpus);
  hold(findings, "algo", executor.name, "channels", program.num_channels, executor.channels);
  hold(findings, "algo", executor.name, "characters in the name", std::ssize(program.name),
       static_cast<std::int64_t>(executor.name_length));
  for (int g = 0; g < program.num_gpus(); ++g) {
    const auto& tbs = program.gpus[static_cast<std::size_t>(g)].tbs;
    hold(findings, place(g), executor.name, "threadblocks", std::ssize(tbs), executor.tbs);
    std::int64_t nodes = 1 + program.num_gpus() + std::ssize(tbs);
    std::map<int, int> leaving, entering;
    for (int t = 0; t < static_cast<int>(tbs.size()); ++t) {
      const ThreadBlock& tb = tbs[static_cast<std::size_t>(t)];
      nodes += std::ssize(tb.steps);
      if (tb.send_peer >= 0) ++leaving[tb.channel];
      if (tb.recv_peer >= 0) ++entering[tb.channel];
      check_tb(program, executor, g, t, findings);
    }
    for (const auto& [channel, number] : leaving) {
      hold(findings, place(g), executor.name, fmt::format("connections out on channel {}", channel).c_str(),
           number, executor.connections);
    }
    for (const auto& [channel, number] : entering) {
      hold(findings, place(g), executor.name, fmt::format("connections in on channel {}", channel).c_str(),
           number, executor.connections);
    }
    hold(findings, place(g), executor.name, "XML nodes in its view", nodes, executor.xml_nodes);
  }
}

}  // namespace rondo::xmlcheck
