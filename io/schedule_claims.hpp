#pragma once

#include <optional>
#include <string>

#include "rondo/core/schedule.hpp"

/// What the JSON and the HDF5 form of a schedule share.
namespace rondo {

/// Figures that follow from others and are stored for readers.
struct ScheduleClaims {
  std::optional<double> algorithm_bandwidth_GBps = std::nullopt;
  std::optional<double> gap = std::nullopt;
};

ScheduleClaims claims_of(const ProvenSchedule& proven);
/// Throws Error(bad_data) where a stored figure contradicts those it follows from. Other writers may round: a
/// relative 1e-4 of the bandwidth and an absolute 1e-5 of the gap are allowed.
void check_claims(const ProvenSchedule& proven, const ScheduleClaims& stored);

/// Throws Error(bad_data) unless `format` is rondo-schedule, version 1.
void check_schedule_format(const std::string& format, std::int64_t version);

}  // namespace rondo
