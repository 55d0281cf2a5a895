#pragma once

#include "chunk_columns.hpp"
#include "rondo/core/certificate.hpp"

namespace rondo {

/// A metric of a `rondo-schedule` file (FORMATS.md 3), column by column. Without periods all but `length` is
/// empty.
struct MetricColumns {
  std::vector<double> length = {};
  std::vector<double> from_us = {};
  std::vector<std::int64_t> source = {};  ///< one a datum
  RaggedColumn destinations = {.index = {0}};
  std::vector<std::int64_t> datum = {};  ///< this and what follows: one a share
  std::vector<std::int64_t> destination = {};
  std::vector<std::int64_t> place = {};
  std::vector<double> share = {};
};

MetricColumns columns_of(const MetricCertificate& metric);

/// Throws Error(bad_data) for lengths that disagree and numbers that are no ids.
MetricCertificate to_metric(const MetricColumns& columns);

}  // namespace rondo
