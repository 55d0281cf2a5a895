#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <numeric>

#include "fabric_builder.hpp"
#include "generator_families.hpp"
#include "generator_parameters.hpp"

namespace rondo {
namespace {

const GeneratorParameter kBandwidth = {"bandwidth_GBps", "bandwidth of a link, GB/s", "50", positive()};
const GeneratorParameter kLatency = {"latency_us", "latency of a link, us", "0.5", not_negative()};
const GeneratorParameter kMessage = message_cost("a link");

std::vector<NodeId> add_gpus(TopologyBuilder& fabric, std::size_t count) {
  std::vector<NodeId> gpus;
  for (std::size_t g = 0; g < count; ++g) gpus.push_back(fabric.gpu(fmt::format("g{}", g)));
  return gpus;
}

Topology ring(const Parameters& parameters) {
  const std::size_t count = parameters.count("gpus");
  const LinkFigures figures = parameters.link("bandwidth_GBps", "latency_us");
  const bool bidirectional = parameters.flag("bidirectional");
  TopologyBuilder fabric(fmt::format("ring-{}{}", count, bidirectional ? "" : "-unidirectional"),
                         "generated: ring");
  const std::vector<NodeId> gpus = add_gpus(fabric, count);
  for (std::size_t g = 0; g < count; ++g) {
    const NodeId next = gpus[(g + 1) % count];
    fabric.link(gpus[g], next, figures);
    // In a ring of two the next GPU is the previous one, whose own link already goes the other way.
    if (bidirectional && count > 2) fabric.link(next, gpus[g], figures);
  }
  return std::move(fabric).build();
}

std::vector<GeneratorParameter> lattice_parameters() {
  return {{"dims", "GPUs along each dimension, such as 8x8 or 4x4x4", "4x4", several(whole_number(2), 'x')},
          {"bandwidth_GBps", "bandwidth of a link, GB/s; a list such as 50,75 gives one value a dimension",
           "50", several(positive(), ',')},
          kLatency,
          kMessage};
}

/// Mesh or torus. The last dimension varies fastest in the numbering of GPUs. A torus dimension of 2 has no
/// link that wraps around, for its ends are neighbours already.
Topology lattice(const std::string& family, bool wraps, const Parameters& parameters) {
  const std::vector<std::size_t> dims = parameters.dims("dims");
  const std::vector<double> bandwidth = parameters.bandwidth_per_dim("bandwidth_GBps", dims.size());
  const double latency_us = parameters.number("latency_us");
  const double message_us = parameters.number("message_us");
  const std::size_t count = std::accumulate(dims.begin(), dims.end(), std::size_t{1}, std::multiplies<>());

  TopologyBuilder fabric(fmt::format("{}-{}", family, fmt::join(dims, "x")), "generated: " + family);
  std::vector<std::size_t> position(dims.size());
  for (std::size_t g = 0; g < count; ++g) {
    std::size_t rest = g;
    for (std::size_t d = dims.size(); d-- > 0; rest /= dims[d]) position[d] = rest % dims[d];
    fabric.gpu(fmt::format("g{}", fmt::join(position, ".")));
  }
  for (std::size_t g = 0; g < count; ++g) {
    std::size_t stride = count;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      stride /= dims[d];
      const std::size_t here = g / stride % dims[d];
      const LinkFigures figures = {bandwidth[d], latency_us, message_us};
      if (here + 1 < dims[d]) {
        fabric.connect(NodeId(g), NodeId(g + stride), figures);
      } else if (wraps && dims[d] > 2) {
        fabric.connect(NodeId(g), NodeId(g - here * stride), figures);
      }
    }
  }
  return std::move(fabric).build();
}

Topology mesh(const Parameters& parameters) {
  return lattice("mesh", false, parameters);
}

Topology torus(const Parameters& parameters) {
  return lattice("torus", true, parameters);
}

Topology hypercube(const Parameters& parameters) {
  const std::size_t dimensions = parameters.count("dimensions");
  const LinkFigures figures = parameters.link("bandwidth_GBps", "latency_us");
  const std::size_t count = std::size_t{1} << dimensions;
  TopologyBuilder fabric(fmt::format("hypercube-{}", count), "generated: hypercube");
  for (std::size_t g = 0; g < count; ++g) fabric.gpu(fmt::format("g{:0{}b}", g, dimensions));
  for (std::size_t g = 0; g < count; ++g) {
    for (std::size_t d = 0; d < dimensions; ++d) {
      fabric.link(NodeId(g), NodeId(g ^ (std::size_t{1} << d)), figures);
    }
  }
  return std::move(fabric).build();
}

Topology full(const Parameters& parameters) {
  const std::size_t count = parameters.count("gpus");
  TopologyBuilder fabric(fmt::format("full-{}", count), "generated: fully connected");
  fabric.connect_all(add_gpus(fabric, count), parameters.link("bandwidth_GBps", "latency_us"));
  return std::move(fabric).build();
}

}  // namespace

TopologyGenerator ring_family() {
  return {"ring",
          "GPUs in a ring",
          {{"gpus", "number of GPUs", "8", whole_number(2)},
           kBandwidth,
           kLatency,
           kMessage,
           {"bidirectional", "links both ways, or from each GPU to the next only", "true",
            one_of({"true", "false"})}},
          ring};
}

TopologyGenerator mesh_family() {
  return {"mesh", "a grid of GPUs without wrap-around", lattice_parameters(), mesh};
}

TopologyGenerator torus_family() {
  return {"torus",
          "a grid of GPUs with wrap-around (none along a dimension of 2: its ends are neighbours already)",
          lattice_parameters(), torus};
}

TopologyGenerator hypercube_family() {
  return {"hypercube",
          "2^d GPUs, linked where their numbers differ in one bit",
          {{"dimensions", "dimensions; 2^dimensions GPUs", "3", whole_number(1, 19)},
           kBandwidth,
           kLatency,
           kMessage},
          hypercube};
}

TopologyGenerator full_family() {
  return {"full",
          "fully connected: a link from every GPU to every other",
          {{"gpus", "number of GPUs", "8", whole_number(2)}, kBandwidth, kLatency, kMessage},
          full};
}

}  // namespace rondo
