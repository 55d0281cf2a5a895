#include "metric_columns.hpp"

#include <fmt/format.h>

#include <limits>

#include "column_checks.hpp"
#include "rondo/core/error.hpp"

namespace rondo {
namespace {

std::int32_t to_id(const char* name, std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max())
    throw Error(ExitCode::bad_data, fmt::format("lower_bound.certificate: {} {} is no id", name, value));
  return static_cast<std::int32_t>(value);
}

}  // namespace

MetricColumns columns_of(const MetricCertificate& metric) {
  MetricColumns columns{.length = metric.length, .from_us = metric.from_us};
  for (const MetricDatum& datum : metric.data) {
    columns.source.push_back(datum.source.value);
    columns.destinations.add_row(datum.destinations);
  }
  for (const MetricShare& share : metric.shares) {
    columns.datum.push_back(share.datum);
    columns.destination.push_back(share.destination.value);
    columns.place.push_back(share.place);
    columns.share.push_back(share.length);
  }
  return columns;
}

MetricCertificate to_metric(const MetricColumns& columns) {
  MetricCertificate metric{.length = columns.length, .from_us = columns.from_us};
  check_offsets("lower_bound.certificate.data.destinations", columns.destinations.index,
                columns.source.size(), columns.destinations.value.size(),
                "lower_bound.certificate.data.source");
  for (std::size_t d = 0; d < columns.source.size(); ++d) {
    metric.data.push_back({.source = GpuId{to_id("GPU", columns.source[d])}, .destinations = {}});
    MetricDatum& datum = metric.data.back();
    for (const std::int64_t g : columns.destinations.row(d)) datum.destinations.emplace_back(to_id("GPU", g));
  }
  const std::size_t num_shares = columns.share.size();
  check_length("lower_bound.certificate.shares.datum", columns.datum.size(), num_shares,
               "lower_bound.certificate.shares.length");
  check_length("lower_bound.certificate.shares.destination", columns.destination.size(), num_shares,
               "lower_bound.certificate.shares.length");
  check_length("lower_bound.certificate.shares.place", columns.place.size(), num_shares,
               "lower_bound.certificate.shares.length");
  for (std::size_t s = 0; s < num_shares; ++s) {
    metric.shares.push_back({.datum = to_id("datum", columns.datum[s]),
                             .destination = GpuId{to_id("GPU", columns.destination[s])},
                             .place = to_id("place", columns.place[s]),
                             .length = columns.share[s]});
  }
  return metric;
}

}  // namespace rondo
