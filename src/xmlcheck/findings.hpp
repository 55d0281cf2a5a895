#pragma once

#include <fmt/format.h>

#include "rondo/xmlcheck/check.hpp"

namespace rondo::xmlcheck {

/// Counts all findings and keeps the first few.
class Findings {
 public:
  Findings(CheckResult& result, std::size_t most) : result_(result), most_(most) {}

  template <class... Arguments>
  void add(const std::string& where, fmt::format_string<Arguments...> what, Arguments&&... arguments) {
    if (result_.num_findings++ < most_) {
      result_.findings.push_back({where, fmt::format(what, std::forward<Arguments>(arguments)...)});
    }
  }
  bool any() const { return result_.num_findings > 0; }

 private:
  CheckResult& result_;
  std::size_t most_;
};

}  // namespace rondo::xmlcheck
