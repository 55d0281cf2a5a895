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

/// Puts `bytes` under `path`. Under a temporary name that nobody can guess, in the same folder: the space is
/// reserved, the bytes are written, fsynced, read back and compared; then the file is renamed to `path` and
/// the folder fsynced. The previous file stays until then; whatever goes wrong, nothing is left behind but
/// what a killed process leaves, see is_temporary_name. Error(cannot_create), with the system's reason, for
/// a read-only folder, a full disk, a name that is a directory.
void write_atomically(const std::filesystem::path& path, std::string_view bytes);

/// write_atomically for text.
void write_text_file(const std::filesystem::path& path, const std::string& text);

/// Whether a file of this name (no folder) is what a killed process leaves of a file that it was writing.
bool is_temporary_name(const std::filesystem::path& name);

/// Removes such files from `folder`; nothing where there is no such folder. For who has locked the run.
/// Throws Error(cannot_create).
void remove_temporary_files(const std::filesystem::path& folder);

/// Does nothing where there is no such file. Throws Error(cannot_create).
void remove_file(const std::filesystem::path& path);

/// Makes one folder where it is missing, and sees to it that its name is on the disk. Returns whether it was
/// missing. Throws Error(cannot_create).
bool make_folder(const std::filesystem::path& folder);

/// 64-bit xxHash (XXH3) of bytes as 16 hex digits.
std::string digest_of(const void* data, std::size_t size);
std::string digest_of(const std::string& text);

}  // namespace rondo
