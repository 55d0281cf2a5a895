#pragma once

#include <string>

#include "rondo/xmlcheck/check.hpp"

namespace rondo::cli {

/// "msccl, msccl-executor-nccl"
std::string executor_names();

/// The findings, a line each.
std::string describe(const xmlcheck::CheckResult& result);

}  // namespace rondo::cli
