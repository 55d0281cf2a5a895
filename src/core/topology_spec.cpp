#include <fmt/format.h>

#include "rondo/core/error.hpp"
#include "rondo/core/generators.hpp"

namespace rondo {

Topology generate_topology(const std::string& spec) {
  const std::size_t colon = spec.find(':');
  std::map<std::string, std::string> values;
  std::string name;
  for (std::size_t at = colon; at != std::string::npos;) {
    const std::size_t next = spec.find(',', at + 1);
    const std::string piece = spec.substr(at + 1, next - at - 1);
    const std::size_t equals = piece.find('=');
    at = next;
    if (equals == std::string::npos && !name.empty()) {  // a value may be a list: "50,75"
      values[name] += "," + piece;
      continue;
    }
    name = piece.substr(0, equals);
    if (equals == std::string::npos) {
      throw Error(
          ExitCode::usage,
          fmt::format("'{}' in topology '{}' has no value; write FAMILY:NAME=VALUE,NAME=VALUE", piece, spec));
    }
    if (!values.emplace(name, piece.substr(equals + 1)).second) {
      throw Error(ExitCode::usage,
                  fmt::format("'{}' is given twice in topology '{}'; give it once", name, spec));
    }
  }
  return generate_topology(spec.substr(0, colon), values);
}

}  // namespace rondo
