#pragma once

#include <filesystem>

#include "rondo/core/error.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_files.hpp"

namespace rondo {

/// Runs `read`; what it refuses is refused with the file's name before it.
template <class Read>
auto naming_file(const std::filesystem::path& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.code(), path.string() + ": " + error.what());
  }
}

/// Reads a JSON file and interprets it: `interpret(json)`.
template <class Interpret>
auto read_as(const std::filesystem::path& path, const Interpret& interpret) {
  const Json json = parse_json(read_text_file(path), path.string());
  return naming_file(path, [&] { return interpret(json); });
}

}  // namespace rondo
