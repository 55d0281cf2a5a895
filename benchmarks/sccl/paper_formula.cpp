#include "paper_formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "rondo/core/index.hpp"

namespace rondo::benchmarks::sccl {
namespace {

std::string time_of(int chunk, int gpu) {
  return fmt::format("t_{}_{}", chunk, gpu);
}
std::string sent(int chunk, std::size_t arc) {
  return fmt::format("s_{}_{}", chunk, arc);
}
std::string rounds_of(int step) {
  return fmt::format("r_{}", step);
}

}  // namespace

std::string paper_formula(const StepInstance& in) {
  std::string text;
  const auto line = [&](const std::string& what) { text.append(what).append("\n"); };
  const auto claim = [&](const std::string& what) { line(fmt::format("(assert {})", what)); };
  const int chunks = static_cast<int>(in.data.size()) * in.chunks;
  for (int s = 1; s <= in.steps; ++s) {
    line(fmt::format("(declare-const {} Int)", rounds_of(s)));
    claim(fmt::format("(>= {} 1)", rounds_of(s)));
  }
  for (int c = 0; c < chunks; ++c) {
    const StepDatum& datum = in.data[index(c / in.chunks)];
    for (int g = 0; g < in.num_gpus; ++g) {
      line(fmt::format("(declare-const {} Int)", time_of(c, g)));
      claim(fmt::format("(>= {} 0)", time_of(c, g)));
      if (g == datum.origin) claim(fmt::format("(= {} 0)", time_of(c, g)));  // C1
      if (std::ranges::find(datum.wanted, g) != datum.wanted.end())
        claim(fmt::format("(<= {} {})", time_of(c, g), in.steps));  // C2
    }
    for (std::size_t a = 0; a < in.arcs.size(); ++a) {
      line(fmt::format("(declare-const {} Bool)", sent(c, a)));
      claim(fmt::format("(=> {} (< {} {}))", sent(c, a), time_of(c, in.arcs[a].from),
                        time_of(c, in.arcs[a].to)));  // C4
    }
    for (int g = 0; g < in.num_gpus; ++g) {
      if (g == datum.origin) continue;
      std::string into;
      for (std::size_t a = 0; a < in.arcs.size(); ++a) {
        if (in.arcs[a].to == g) into.append(" ").append(sent(c, a));
      }
      claim(fmt::format("(=> (<= {} {}) (and ((_ at-most 1){}) ((_ at-least 1){})))", time_of(c, g), in.steps,
                        into, into));  // C3
    }
  }
  for (int s = 1; s <= in.steps; ++s) {
    for (const StepBound& bound : in.bounds) {
      std::string load;
      for (int c = 0; c < chunks; ++c) {
        for (const int a : bound.arcs)
          load += fmt::format(" (and {} (= {} {}))", sent(c, index(a)), time_of(c, in.arcs[index(a)].to), s);
      }
      for (int r = 1; r <= in.rounds - in.steps + 1; ++r)
        claim(
            fmt::format("(=> (= {} {}) ((_ at-most {}){}))", rounds_of(s), r, bound.chunks * r, load));  // C5
    }
  }
  std::string sum;
  for (int s = 1; s <= in.steps; ++s) sum.append(" ").append(rounds_of(s));
  claim(fmt::format("(= (+ 0{}) {})", sum, in.rounds));  // C6
  line("(check-sat)");
  return text;
}

}  // namespace rondo::benchmarks::sccl
