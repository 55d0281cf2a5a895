#pragma once

#include <string>

#include "rondo/xmlcheck/check.hpp"

namespace rondo::xmlcheck {

/// All findings, a line each.
inline std::string text_of(const CheckResult& result) {
  std::string text;
  for (const Finding& finding : result.findings) text += finding.where + ": " + finding.what + "\n";
  return text;
}

}  // namespace rondo::xmlcheck
