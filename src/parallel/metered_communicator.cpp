#include "rondo/parallel/metered_communicator.hpp"

#include <utility>

namespace rondo {

template <class Talk>
auto MeteredCommunicator::metered(Talk talk) const {
  inner_.barrier();
  const Stopwatch clock;
  auto heard = talk();
  exchange_.seconds += clock.seconds();
  return heard;
}

void MeteredCommunicator::count(std::size_t bytes) const {
  if (inner_.size() > 1) exchange_.bytes += static_cast<double>(bytes);
}

Bytes MeteredCommunicator::broadcast(Bytes bytes, int root) const {
  Bytes heard = metered([&] { return inner_.broadcast(std::move(bytes), root); });
  count(heard.size());
  return heard;
}

std::vector<Bytes> MeteredCommunicator::all_gather(const Bytes& bytes) const {
  std::vector<Bytes> heard = metered([&] { return inner_.all_gather(bytes); });
  for (const Bytes& part : heard) count(part.size());
  return heard;
}

double MeteredCommunicator::max(double value) const {
  count(sizeof value * static_cast<std::size_t>(size()));
  return metered([&] { return inner_.max(value); });
}

double MeteredCommunicator::sum(double value) const {
  count(sizeof value * static_cast<std::size_t>(size()));
  return metered([&] { return inner_.sum(value); });
}

std::vector<double> MeteredCommunicator::sum(std::vector<double> values) const {
  count(values.size() * sizeof(double) * static_cast<std::size_t>(size()));
  return metered([&] { return inner_.sum(std::move(values)); });
}

}  // namespace rondo
