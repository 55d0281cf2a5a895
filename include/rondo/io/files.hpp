#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

/// Files that are whole or not there. Nothing here is collective: the caller decides which rank writes.
namespace rondo {

/// The whole file. Error(no_input) when it does not exist or is a directory, Error(io) when it cannot be
/// read, Error(unavailable) when it is larger than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path,
                           std::uintmax_t max_bytes = std::uintmax_t{1} << 32);

/// Calls `write` with an unguessable temporary name in the same folder, then fsyncs, renames it to `path` and
/// fsyncs the folder. The previous file stays until then; whatever goes wrong, nothing is left behind.
/// Error(cannot_create), with the system's reason, for a read-only folder, a full disk, a name that is a
/// directory.
void write_atomically(const std::filesystem::path& path,
                      const std::function<void(const std::filesystem::path& temporary)>& write);

/// write_atomically for text, with the space reserved before.
void write_text_file(const std::filesystem::path& path, const std::string& text);

/// 64-bit xxHash (XXH3) of bytes as 16 hex digits.
std::string digest_of(const void* data, std::size_t size);
std::string digest_of(const std::string& text);

}  // namespace rondo
