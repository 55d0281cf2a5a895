#include "hdf5_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "child_process.hpp"
#include "format_version.hpp"
#include "rondo/core/error.hpp"

namespace rondo {
namespace {

/// Plenty for a file of this length, even one of nothing but zeros, compressed.
ChildLimits limits_of(const std::filesystem::path& path) {
  const std::uint64_t content = max_content_bytes(std::filesystem::file_size(path));
  constexpr std::uint64_t kCopies = 16;  // bytes become doubles, which are packed, in a buffer that grows
  const ChildLimits least;
  return {.cpu_s = least.cpu_s + static_cast<unsigned>(std::min<std::uint64_t>(content >> 24, 600)),
          .memory_bytes = least.memory_bytes + kCopies * content};
}

const char* kind_name(Hdf5Value::Kind kind) {
  switch (kind) {
    case Hdf5Value::Kind::integer:
      return "integer";
    case Hdf5Value::Kind::real:
      return "floating point";
    case Hdf5Value::Kind::text:
      return "text of fixed length";
    default:
      return "another type";
  }
}

}  // namespace

void Hdf5GroupReader::check_members(std::initializer_list<std::string_view> known) const {
  for (auto entry = content_->lower_bound(prefix_);
       entry != content_->end() && entry->first.starts_with(prefix_); ++entry) {
    std::string_view name = std::string_view(entry->first).substr(prefix_.size());
    if (name.ends_with('/')) name.remove_suffix(1);
    if (name.find('/') != std::string_view::npos) continue;  // of a group below
    if (name.starts_with('@')) name.remove_prefix(1);
    if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) continue;
    refuse(std::string(name).c_str(),
           fmt::format("unknown name; known names are {}", fmt::join(known, ", ")));
  }
}

int Hdf5GroupReader::check_format(const std::string& name) const {
  if (const std::string format = text("format"); format != name) {
    refuse("format", fmt::format("'{}'; it has to be '{}'", format, name));
  }
  const std::int64_t version = integer("version");
  if (version != 1 && version != kNewestVersion) {
    refuse("version", fmt::format("{}; it has to be 1 or {}, a version there is", version, kNewestVersion));
  }
  return static_cast<int>(version);
}

void Hdf5GroupReader::check_version(int version, std::initializer_list<const char*> newest) const {
  if (version >= kNewestVersion) return;
  for (const char* name : newest) {
    if (!has_link(name)) continue;
    refuse(name,
           fmt::format("of version {}; this file says that it is of version {}", kNewestVersion, version));
  }
}

bool Hdf5GroupReader::has_attribute(const char* name) const {
  return find(fmt::format("{}@{}", prefix_, name)) != nullptr;
}

bool Hdf5GroupReader::has_link(const char* name) const {
  return find(prefix_ + name) != nullptr || find(fmt::format("{}{}/", prefix_, name)) != nullptr;
}

Hdf5GroupReader Hdf5GroupReader::open_group(const char* name) const {
  std::string prefix = fmt::format("{}{}/", prefix_, name);
  if (find(prefix) == nullptr) refuse(name, "HDF5 finds no such group");
  return {content_, shown_, std::move(prefix)};
}

double Hdf5GroupReader::number(const char* name) const {
  return attribute(name, Hdf5Value::Kind::real).reals.front();
}

std::int64_t Hdf5GroupReader::integer(const char* name) const {
  return attribute(name, Hdf5Value::Kind::integer).integers.front();
}

std::string Hdf5GroupReader::text(const char* name) const {
  return attribute(name, Hdf5Value::Kind::text).texts.front();
}

std::vector<double> Hdf5GroupReader::numbers(const char* name) const {
  return dataset(name, Hdf5Value::Kind::real).reals;
}

std::vector<std::int64_t> Hdf5GroupReader::integers(const char* name) const {
  return dataset(name, Hdf5Value::Kind::integer).integers;
}

std::vector<std::string> Hdf5GroupReader::texts(const char* name) const {
  return dataset(name, Hdf5Value::Kind::text).texts;
}

void Hdf5GroupReader::refuse(const char* name, const std::string& message) const {
  throw Error(ExitCode::bad_data, fmt::format("{}: /{}{}: {}", shown_, prefix_, name, message));
}

const Hdf5Value* Hdf5GroupReader::find(const std::string& place) const {
  const auto entry = content_->find(place);
  return entry == content_->end() ? nullptr : &entry->second;
}

const Hdf5Value& Hdf5GroupReader::attribute(const char* name, Hdf5Value::Kind kind) const {
  const Hdf5Value* value = find(fmt::format("{}@{}", prefix_, name));
  if (value == nullptr) refuse(name, "HDF5 finds no such attribute");
  if (value->kind != kind || value->is_list) {
    refuse(name, fmt::format("it has to be one value of type {}", kind_name(kind)));
  }
  return *value;
}

const Hdf5Value& Hdf5GroupReader::dataset(const char* name, Hdf5Value::Kind kind) const {
  const Hdf5Value* value = find(prefix_ + name);
  if (value == nullptr) refuse(name, "HDF5 finds no such dataset");
  if (value->kind != kind || !value->is_list) {
    refuse(name, fmt::format("it has to be a list of type {}", kind_name(kind)));
  }
  return *value;
}

Hdf5InputFile::Hdf5InputFile(const std::filesystem::path& path)
    : shown_(fmt::format("'{}'", path.string())),
      content_(std::make_shared<const Hdf5Content>(unpack_content(in_child_process(
          shown_, limits_of(path), [&] { return pack_content(load_hdf5(path, shown_)); })))) {}

Hdf5GroupReader Hdf5InputFile::root() const {
  return {content_, shown_, ""};
}

}  // namespace rondo
