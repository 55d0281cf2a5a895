#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

/// Files that are whole or not there. Nothing here is collective: the caller decides which rank writes.
namespace rondo {

/// The whole file. Error(no_input) when it does not exist or is a directory, Error(io) when it cannot be
/// read, Error(unavailable) when it is larger than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path,
                           std::uintmax_t max_bytes = std::uintmax_t{1} << 32);

/// Writes `bytes` to `path`. Reserves the space under a temporary, unguessable name in the same folder,
/// writes the bytes, fsyncs, reads them back and compares; then renames the file to `path` and fsyncs the
/// folder. The previous file stays until then. After a failure nothing remains; after a kill, a file that
/// is_temporary_name() recognises. Throws Error(cannot_create), with the reason of the system, for a
/// read-only folder, a full disk, or a name that is a directory.
void write_atomically(const std::filesystem::path& path, std::string_view bytes);

/// write_atomically for text.
void write_text_file(const std::filesystem::path& path, const std::string& text);

/// Whether a file of this name (no folder) is a half-written file of a killed process.
bool is_temporary_name(const std::filesystem::path& name);

/// Removes such files from `folder`; nothing where there is no such folder. Only for the run that has locked
/// the folder. Throws Error(cannot_create).
void remove_temporary_files(const std::filesystem::path& folder);

/// Does nothing where there is no such file. Throws Error(cannot_create).
void remove_file(const std::filesystem::path& path);

/// Makes one folder where it is missing, and ensures that its name is on the disk. Returns whether it was
/// missing. Throws Error(cannot_create).
bool make_folder(const std::filesystem::path& folder);

/// 64-bit xxHash (XXH3) of bytes as 16 hex digits.
std::string digest_of(const void* data, std::size_t size);
std::string digest_of(const std::string& text);

}  // namespace rondo
