#include "rondo/io/schedule_files.hpp"

#include "rondo/io/read_as.hpp"
#include "rondo/io/schedule_hdf5.hpp"

namespace rondo {
namespace {

bool is_json(const std::filesystem::path& path) {
  return path.extension() == ".json";
}

}  // namespace

ProvenSchedule read_schedule(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return read_schedule(path / "schedule.h5");
  if (is_json(path)) return read_as(path, [](const Json& json) { return schedule_from_json(json); });
  return read_schedule_hdf5(path);
}

void write_schedule(const std::filesystem::path& path, const ProvenSchedule& proven) {
  if (is_json(path)) return write_text_file(path, format_json(schedule_to_json(proven)));
  write_schedule_hdf5(path, proven, "");
}

}  // namespace rondo
