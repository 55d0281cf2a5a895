#include "automorphisms.hpp"

#include <nauty/naurng.h>
#include <nauty/traces.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rondo {
namespace {

/// Traces hands over generators to a function without context.
std::vector<std::vector<int>>* traced = nullptr;

void keep_generator(int, int* image, int n) {
  traced->emplace_back(image, image + n);
}

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

Automorphisms automorphisms(const ColouredGraph& graph) {
  const std::size_t n = graph.colour.size();
  std::vector<std::size_t> begin(n, 0);
  std::vector<int> degree(n, 0);
  for (const auto& [a, b] : graph.edges) {
    ++degree[index(a)];
    ++degree[index(b)];
  }
  for (std::size_t i = 1; i < n; ++i) begin[i] = begin[i - 1] + index(degree[i - 1]);
  std::vector<int> neighbour(2 * graph.edges.size());
  std::vector<std::size_t> next = begin;
  for (const auto& [a, b] : graph.edges) {
    neighbour[next[index(a)]++] = b;
    neighbour[next[index(b)]++] = a;
  }

  sparsegraph sparse;
  SG_INIT(sparse);
  sparse.nv = static_cast<int>(n);
  sparse.nde = neighbour.size();
  sparse.v = begin.data();
  sparse.d = degree.data();
  sparse.e = neighbour.data();
  sparse.vlen = sparse.dlen = n;
  sparse.elen = neighbour.size();

  // Vertices by colour; 0 marks the last one of its colour.
  std::vector<int> lab(n);
  std::iota(lab.begin(), lab.end(), 0);
  std::stable_sort(lab.begin(), lab.end(),
                   [&](int a, int b) { return graph.colour[index(a)] < graph.colour[index(b)]; });
  std::vector<int> ptn(n, 1);
  for (std::size_t i = 0; i < n; ++i) {
    if (i + 1 == n || graph.colour[index(lab[i])] != graph.colour[index(lab[i + 1])]) ptn[i] = 0;
  }

  Automorphisms result;
  std::vector<int> orbits(n);
  DEFAULTOPTIONS_TRACES(options);
  options.defaultptn = FALSE;
  options.userautomproc = keep_generator;
  TracesStats stats;
  traced = &result.generators;
  ran_init(0);  // Traces draws random numbers: the same ones whatever was asked before
  Traces(&sparse, lab.data(), ptn.data(), orbits.data(), &options, &stats, nullptr);
  traced = nullptr;
  result.log10_order = std::log10(stats.grpsize1) + stats.grpsize2;
  return result;
}

}  // namespace rondo
