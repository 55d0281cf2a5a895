#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hdf5_handle.hpp"

/// Writing HDF5: scalars become attributes, arrays datasets, contiguous or, where they are long,
/// compressed. Nothing here reaches a disk, so a
/// failure is a fault of ours: Error(internal).
namespace rondo {

/// A dataset that is written from its beginning to its end, some values at a time.
class Hdf5ColumnAppender {
 public:
  /// Values are of `memory_type`, such as H5T_NATIVE_DOUBLE.
  Hdf5ColumnAppender(Hdf5Handle dataset, hid_t memory_type, std::string place)
      : dataset_(std::move(dataset)), memory_type_(memory_type), place_(std::move(place)) {}

  /// Where the dataset is compressed, all but the last call take whole pieces (kHdf5Piece).
  void append(const void* values, std::size_t count);

 private:
  Hdf5Handle dataset_;
  hid_t memory_type_;
  std::string place_;
  std::size_t written_ = 0;
};

/// Values that are compressed together.
inline constexpr std::size_t kHdf5Piece = std::size_t{1} << 18;

class Hdf5GroupWriter {
 public:
  Hdf5GroupWriter(Hdf5Handle group, std::string place) : group_(std::move(group)), place_(std::move(place)) {}

  Hdf5GroupWriter create_group(const std::string& name) const;
  void put(const std::string& name, double value) const;
  void put(const std::string& name, std::int64_t value) const;
  void put(const std::string& name, const std::string& value) const;
  /// `units` ("us", "GB/s", "bytes") becomes an attribute of the dataset; "" for none.
  void put_array(const std::string& name, const std::vector<double>& values, const std::string& units) const;
  /// `file_type` is the type in the file, such as H5T_STD_I32LE.
  void put_array(const std::string& name, const std::vector<std::int64_t>& values, hid_t file_type) const;
  void put_array(const std::string& name, const std::vector<std::string>& values) const;
  /// A dataset of `count` values to be appended.
  Hdf5ColumnAppender create_column(const std::string& name, std::size_t count, hid_t file_type,
                                   hid_t memory_type, const std::string& units) const;
  /// A dataset of `count` values that will be written later. Returns where in the file they will lie, in
  /// bytes from its beginning, the user block included; 0 for no values.
  std::uint64_t allocate_array(const std::string& name, std::size_t count, hid_t file_type,
                               const std::string& units) const;

 private:
  Hdf5Handle create_dataset(const std::string& name, std::size_t count, hid_t file_type,
                            const Hdf5Handle& properties) const;
  void put_attribute(const std::string& name, hid_t file_type, hid_t memory_type, const void* value) const;
  void put_dataset(const std::string& name, std::size_t count, hid_t file_type, hid_t memory_type,
                   const void* values, const std::string& units) const;

  Hdf5Handle group_;
  std::string place_;
};

/// A file that is built in memory, because libhdf5 1.10 crashes when a disk fills up while it writes.
class Hdf5Image {
 public:
  /// With a user block of `user_block_bytes` in front.
  explicit Hdf5Image(std::size_t user_block_bytes);

  Hdf5GroupWriter root() const;
  /// The bytes of the file, the user block being NUL.
  std::vector<char> bytes() const;

 private:
  std::size_t user_block_bytes_;
  Hdf5Handle file_;
};

}  // namespace rondo
