#include "hdf5_content.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "hdf5_handle.hpp"
#include "rondo/core/error.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {
namespace {

constexpr std::uint64_t kMaxDeflateRatio = 1032;    // of the format itself
constexpr std::size_t kMaxAttributeBytes = 65'536;  // HDF5's own limit
constexpr std::size_t kMaxDepth = 8;                // the formats need 3
constexpr std::size_t kMaxEntries = 1'000;          // the formats need 50

herr_t collect_link(hid_t, const char* name, const H5L_info_t* link, void* names) {
  // Soft and external links may lead in circles, or to any file on this machine.
  if (link->type == H5L_TYPE_HARD) static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return link->type == H5L_TYPE_HARD ? 0 : -1;
}

herr_t collect_attribute(hid_t, const char* name, const H5A_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

/// Fixed-length text ends at the first NUL or fills its size.
std::string unpadded(const char* text, std::size_t size) {
  return {text, ::strnlen(text, size)};
}

Hdf5Value::Kind kind_of(const Hdf5Handle& type) {
  switch (H5Tget_class(type.id())) {
    case H5T_INTEGER:
      return Hdf5Value::Kind::integer;
    case H5T_FLOAT:
      return Hdf5Value::Kind::real;
    case H5T_STRING:
      return H5Tis_variable_str(type.id()) > 0 ? Hdf5Value::Kind::other : Hdf5Value::Kind::text;
    default:
      return Hdf5Value::Kind::other;
  }
}

class Loader {
 public:
  Loader(const std::filesystem::path& path, std::string shown)
      : shown_(std::move(shown)), file_bytes_(std::filesystem::file_size(path)) {
    H5PLset_loading_state(0);
    const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (!file.valid()) refuse("", "HDF5 cannot open it; is it an HDF5 file?");
    const Hdf5Handle root(H5Gopen2(file.id(), "/", H5P_DEFAULT), H5Gclose);
    if (!root.valid()) refuse("", "HDF5 finds no root group");
    load_group(root, "", 0);
  }

  Hdf5Content take() { return std::move(content_); }

 private:
  [[noreturn]] void refuse(const std::string& place, const std::string& message) const {
    throw Error(ExitCode::bad_data, fmt::format("{}: /{}: {}", shown_, place, message));
  }

  Hdf5Value& add(const std::string& place) {
    if (content_.size() >= kMaxEntries)
      refuse(place, fmt::format("more than {} names in the file", kMaxEntries));
    return content_[place];
  }

  void load_group(const Hdf5Handle& group, const std::string& prefix, std::size_t depth) {
    if (depth > kMaxDepth) refuse(prefix, fmt::format("groups nested deeper than {} levels", kMaxDepth));
    std::vector<std::string> links;
    std::vector<std::string> attributes;
    hsize_t position = 0;
    if (H5Literate(group.id(), H5_INDEX_NAME, H5_ITER_INC, &position, collect_link, &links) < 0 ||
        H5Aiterate2(group.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_attribute, &attributes) < 0) {
      refuse(prefix, "HDF5 cannot list its members, or one of them leads out of the file");
    }
    for (const std::string& name : attributes) load_attribute(group, name, prefix + "@" + name);
    for (const std::string& name : links) {
      const std::string place = prefix + name;
      const Hdf5Handle object(H5Oopen(group.id(), name.c_str(), H5P_DEFAULT), H5Oclose);
      if (!object.valid()) refuse(place, "HDF5 cannot open it");
      switch (H5Iget_type(object.id())) {
        case H5I_GROUP:
          add(place + "/").kind = Hdf5Value::Kind::group;
          load_group(object, place + "/", depth + 1);
          break;
        case H5I_DATASET:
          load_dataset(object, place);
          break;
        default:
          add(place);
      }
    }
  }

  void load_attribute(const Hdf5Handle& group, const std::string& name, const std::string& place) {
    const Hdf5Handle attribute(H5Aopen(group.id(), name.c_str(), H5P_DEFAULT), H5Aclose);
    if (!attribute.valid()) refuse(place, "HDF5 cannot open it");
    const Hdf5Handle type(H5Aget_type(attribute.id()), H5Tclose);
    const Hdf5Handle space(H5Aget_space(attribute.id()), H5Sclose);
    Hdf5Value& value = add(place);
    if (H5Sget_simple_extent_type(space.id()) != H5S_SCALAR) return;  // of kind other
    value.kind = kind_of(type);
    if (value.kind == Hdf5Value::Kind::text && H5Tget_size(type.id()) > kMaxAttributeBytes) {
      refuse(place, fmt::format("text of {} bytes is too long", H5Tget_size(type.id())));
    }
    read(value, type, 1, place,
         [&](hid_t memory_type, void* values) { return H5Aread(attribute.id(), memory_type, values); });
  }

  void load_dataset(const Hdf5Handle& dataset, const std::string& place) {
    const Hdf5Handle type(H5Dget_type(dataset.id()), H5Tclose);
    const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose);
    const Hdf5Handle properties(H5Dget_create_plist(dataset.id()), H5Pclose);
    Hdf5Value& value = add(place);
    value.is_list = true;
    if (H5Sget_simple_extent_ndims(space.id()) != 1) return;  // of kind other
    const H5D_layout_t layout = H5Pget_layout(properties.id());
    if ((layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED && layout != H5D_COMPACT) ||
        H5Pget_external_count(properties.id()) != 0) {
      refuse(place, "its values are not in this file");
    }
    const hssize_t count = H5Sget_simple_extent_npoints(space.id());
    const std::size_t size = H5Tget_size(type.id());
    std::uint64_t& room = layout == H5D_CHUNKED ? compressed_room_ : plain_room_;
    if (count < 0 || size == 0 || static_cast<std::uint64_t>(count) > room / size) {
      refuse(place, fmt::format("{} values of {} bytes do not fit into the file's {} bytes", count, size,
                                file_bytes_));
    }
    room -= static_cast<std::uint64_t>(count) * size;
    value.kind = kind_of(type);
    read(value, type, static_cast<std::size_t>(count), place, [&](hid_t memory_type, void* values) {
      return H5Dread(dataset.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    });
  }

  template <class Read>
  void read(Hdf5Value& value, const Hdf5Handle& type, std::size_t count, const std::string& place,
            const Read& read_as) {
    std::vector<char> padded;
    const std::size_t size = H5Tget_size(type.id());
    herr_t result = 0;
    switch (value.kind) {
      case Hdf5Value::Kind::real:
        value.reals.resize(count);
        if (count > 0) result = read_as(H5T_NATIVE_DOUBLE, value.reals.data());
        break;
      case Hdf5Value::Kind::integer:
        value.integers.resize(count);
        if (count > 0) result = read_as(H5T_NATIVE_INT64, value.integers.data());
        break;
      case Hdf5Value::Kind::text:
        padded.resize(count * size);
        if (count > 0) result = read_as(type.id(), padded.data());
        for (std::size_t i = 0; i < count; ++i)
          value.texts.push_back(unpadded(padded.data() + i * size, size));
        break;
      default:
        return;
    }
    if (result < 0) refuse(place, "HDF5 cannot read it");
  }

  std::string shown_;
  std::uint64_t file_bytes_;
  // Values may not share bytes of the file: a name may stand in it a thousand times for the same dataset.
  std::uint64_t plain_room_ = file_bytes_;
  std::uint64_t compressed_room_ = max_content_bytes(file_bytes_);
  Hdf5Content content_;
};

}  // namespace

std::uint64_t max_content_bytes(std::uint64_t file_bytes) {
  return file_bytes * kMaxDeflateRatio;
}

Hdf5Content load_hdf5(const std::filesystem::path& path, const std::string& shown) {
  const Hdf5Silence silence;
  return Loader(path, shown).take();
}

Bytes pack_content(const Hdf5Content& content) {
  MessageWriter message;
  std::size_t bytes = sizeof content.size();
  for (const auto& [place, value] : content) {
    constexpr std::size_t kCounts = 4 * sizeof(std::uint64_t) + sizeof value.kind + sizeof value.is_list;
    bytes += kCounts + place.size() + sizeof(double) * (value.reals.size() + value.integers.size());
    for (const std::string& text : value.texts) bytes += sizeof(std::uint64_t) + text.size();
  }
  message.reserve(bytes);
  message.put(content.size());
  for (const auto& [place, value] : content) {
    message.put_all(place);
    message.put(value.kind);
    message.put(value.is_list);
    message.put_all(value.reals);
    message.put_all(value.integers);
    message.put(value.texts.size());
    for (const std::string& text : value.texts) message.put_all(text);
  }
  return message.take();
}

Hdf5Content unpack_content(const Bytes& bytes) {
  MessageReader message(bytes);
  Hdf5Content content;
  for (auto n = message.get<std::size_t>(); n > 0; --n) {
    Hdf5Value& value = content[message.get_all<std::string>()];
    value.kind = message.get<Hdf5Value::Kind>();
    value.is_list = message.get<bool>();
    value.reals = message.get_all<std::vector<double>>();
    value.integers = message.get_all<std::vector<std::int64_t>>();
    for (auto texts = message.get<std::size_t>(); texts > 0; --texts)
      value.texts.push_back(message.get_all<std::string>());
  }
  return content;
}

}  // namespace rondo
