#include <fmt/format.h>

#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo {
namespace {

constexpr const char* kMember = "checksum";

}  // namespace

std::string sealed_text(Json json) {
  json.erase(kMember);
  const std::string checksum = digest_of(format_json(json));
  json[kMember] = checksum;
  return format_json(json);
}

Json parse_sealed_json(const std::string& text, const std::string& what) {
  Json json = parse_json(text, what);
  if (!json.is_object() || !json.contains(kMember)) {
    throw Error(
        ExitCode::bad_data,
        fmt::format("{}: it has no member '{}': not written by this version, or damaged", what, kMember));
  }
  if (sealed_text(json) != text) {
    throw Error(
        ExitCode::bad_data,
        fmt::format("{}: its checksum does not fit: the file is damaged or was changed; restore it or "
                    "solve again",
                    what));
  }
  json.erase(kMember);
  return json;
}

}  // namespace rondo
