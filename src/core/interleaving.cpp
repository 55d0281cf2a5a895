#include "rondo/core/interleaving.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "transfer_network.hpp"

namespace rondo {
namespace {

std::vector<double> keys_of_items(const TransferNetwork& network, std::span<const double> keys) {
  std::vector<double> of_items;
  for (const TransferNetwork::Item& item : network.items())
    of_items.push_back(keys[index(item.transfer.sends.front())]);
  return of_items;
}

std::vector<double> negated(std::vector<double> values) {
  for (double& value : values) value = -value;
  return values;
}

}  // namespace

Schedule interleaved(const TimedSends& before, const Topology& topology, const Demand& demand,
                     std::span<const double> keys, int concurrency) {
  const TransferNetwork network(before, topology, demand);
  return network.schedule_at(list_starts_us(network, keys_of_items(network, keys), concurrency), concurrency);
}

Schedule interleaved_there_and_back(const TimedSends& before, const Topology& topology, const Demand& demand,
                                    std::span<const double> keys, int passes, int concurrency) {
  const TransferNetwork network(before, topology, demand);
  const BackwardLists backwards(network);
  std::vector<double> starts_us = keys_of_items(network, keys);
  Schedule best{{}, std::numeric_limits<double>::infinity()};
  for (bool gains = true; passes-- > 0 && gains;) {
    const std::vector<double> tails_us = backwards.tails_us(negated(starts_us), concurrency);
    starts_us = list_starts_us(network, negated(tails_us), concurrency);
    const double finish_us = backwards.finish_us(starts_us);
    gains = finish_us < best.finish_us;
    if (gains) best = network.schedule_at(starts_us, concurrency);
  }
  return best;
}

}  // namespace rondo
