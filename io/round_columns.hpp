#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rondo/core/round.hpp"

/// What round files keep one value a row of: the datasets that may be long, and that ranks write together.
namespace rondo {

struct RowRange {
  std::size_t first = 0;
  std::size_t end = 0;  ///< one behind the last
  std::size_t size() const { return end - first; }
};

/// The rows of `num_rows` that rank `rank` of `num_ranks` writes.
RowRange rows_of_rank(std::size_t num_rows, int rank, int num_ranks);

/// A dataset of a round file.
struct RoundColumn {
  std::string group;  ///< "sends", "state/buffers"
  std::string name;
  std::string units;      ///< "" for none
  hid_t type = -1;        ///< in the file, and of what pack() returns
  std::size_t width = 0;  ///< bytes a value
  std::size_t num_rows = 0;
  /// The values of these rows, as they lie in the file.
  std::function<std::vector<char>(RowRange rows)> pack;

  std::string place() const { return group + "/" + name; }
  std::uint64_t num_bytes() const { return std::uint64_t{width} * num_rows; }
};

/// In the order of the file, columns of a group next to one another. They refer to `record`, which has to
/// live as long.
std::vector<RoundColumn> columns_of(const RoundRecord& record);

/// "PLACE: what is wrong" for the first value that no round file may hold; "" where there is none.
std::string find_fault(const RoundRecord& record);

}  // namespace rondo
