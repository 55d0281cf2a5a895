#include "found_times.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "rondo/core/error.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/files.hpp"

namespace rondo::catalogue {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtension = ".times";

fs::path folder_of(const Folder& folder, const Series& series) {
  return folder.cell_path(series, 1).parent_path();
}

/// Closes a line: a kill may leave half of one.
std::string seal_of(const std::string& line) {
  return digest_of(line + producer());
}

std::vector<fs::path> files_of(const Folder& folder, const Series& series) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder_of(folder, series))) return files;
  for (const auto& entry : fs::directory_iterator(folder_of(folder, series))) {
    if (entry.path().extension() == kExtension) files.push_back(entry.path());
  }
  return files;
}

}  // namespace

void keep_time(const Folder& folder, const Series& series, int rank, const std::string& schedule,
               double size_bytes, double finish_us) {
  const fs::path path = folder_of(folder, series) / (std::to_string(rank) + kExtension);
  const std::string line = fmt::format("{} {} {}", schedule, size_bytes, finish_us);
  std::ofstream file(path, std::ios::app);
  // After what a kill has left of a line.
  file << fmt::format("\n{} {}\n", line, seal_of(line)) << std::flush;
  if (!file) throw Error(ExitCode::cannot_create, fmt::format("{} cannot be written", path.string()));
}

KnownTimes found_times(const Folder& folder, const Series& series) {
  KnownTimes found;
  for (const fs::path& path : files_of(folder, series)) {
    std::istringstream lines(read_text_file(path));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string schedule;
      std::string size_bytes;
      std::string finish_us;
      std::string seal;
      words >> schedule >> size_bytes >> finish_us >> seal;
      if (seal.empty() || seal != seal_of(fmt::format("{} {} {}", schedule, size_bytes, finish_us))) continue;
      found[{schedule, std::stod(size_bytes)}] = std::stod(finish_us);
    }
  }
  return found;
}

void remove_found_times(const Folder& folder, const Series& series) {
  for (const fs::path& path : files_of(folder, series)) remove_file(path);
}

}  // namespace rondo::catalogue
