#include "makers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "rondo/pipeline/registry.hpp"

namespace rondo::catalogue {
namespace {

bool is_alike(const Maker& a, const Maker& b) {
  return a.engine == b.engine && a.policy == b.policy;
}

/// The power of two below the geometric mean of both.
int between(int fewer, int more) {
  const auto middle = static_cast<unsigned>(std::sqrt(static_cast<double>(fewer) * more));
  return static_cast<int>(std::bit_floor(std::max(middle, 1U)));
}

}  // namespace

std::optional<Maker> maker_of(const Cell& cell, int chunks) {
  const std::string& label = cell.engine;
  const std::string name = label.substr(0, label.find('/'));
  const auto& registry = engine_registry();
  const auto engine = std::ranges::find(registry, name, &EngineInfo::name);
  if (engine == registry.end()) return std::nullopt;
  Maker maker{name, "", cell.seed, chunks};
  if (label.size() > name.size()) {
    const std::string rest = label.substr(name.size() + 1);
    maker.policy = rest.substr(0, rest.find('/'));
    if (std::ranges::find(engine->policies, maker.policy) == engine->policies.end()) return std::nullopt;
  }
  return maker;
}

std::vector<Maker> makers_between(const std::optional<Maker>& smaller, const std::optional<Maker>& larger) {
  std::vector<Maker> makers;
  const auto add = [&](Maker maker, int chunks) {
    maker.chunks = chunks;
    if (std::ranges::find(makers, maker) == makers.end()) makers.push_back(std::move(maker));
  };
  if (smaller) add(*smaller, smaller->chunks);
  if (larger) add(*larger, larger->chunks);
  if (smaller && larger && is_alike(*smaller, *larger)) {
    add(*larger,
        between(std::min(smaller->chunks, larger->chunks), std::max(smaller->chunks, larger->chunks)));
  } else {
    if (smaller) add(*smaller, 2 * smaller->chunks);
    if (larger && larger->chunks % 2 == 0) add(*larger, larger->chunks / 2);
  }
  return makers;
}

}  // namespace rondo::catalogue
