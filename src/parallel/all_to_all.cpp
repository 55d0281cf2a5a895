#include "rondo/parallel/all_to_all.hpp"

#include <mpi.h>

#include <limits>
#include <numeric>

#include "mpi_check.hpp"
#include "rondo/core/error.hpp"

namespace rondo {
namespace {

/// Where the messages begin when they lie one behind the other, and the end.
std::vector<int> places_of(const std::vector<int>& sizes) {
  std::vector<int> places(sizes.size() + 1, 0);
  std::int64_t end = 0;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    end += sizes[r];
    if (end > std::numeric_limits<int>::max())
      throw Error(ExitCode::internal, "messages of more than 2 GiB at once between ranks");
    places[r + 1] = static_cast<int>(end);
  }
  return places;
}

}  // namespace

std::vector<Bytes> all_to_all(const Communicator& communicator, const std::vector<Bytes>& to_each) {
  if (communicator.size() == 1) return to_each;
  if (communicator.mpi_communicator() == nullptr)
    throw Error(ExitCode::internal, "ranks without MPI cannot send to one another");
  const MPI_Comm mpi = *static_cast<const MPI_Comm*>(communicator.mpi_communicator());
  std::vector<int> sizes;
  for (const Bytes& bytes : to_each) sizes.push_back(static_cast<int>(bytes.size()));
  std::vector<int> sizes_here(sizes.size());
  check(MPI_Alltoall(sizes.data(), 1, MPI_INT, sizes_here.data(), 1, MPI_INT, mpi), "MPI_Alltoall");
  const std::vector<int> from = places_of(sizes);
  const std::vector<int> to = places_of(sizes_here);
  Bytes sent;
  sent.reserve(static_cast<std::size_t>(from.back()));
  for (const Bytes& bytes : to_each) sent.insert(sent.end(), bytes.begin(), bytes.end());
  Bytes received(static_cast<std::size_t>(to.back()));
  check(MPI_Alltoallv(sent.data(), sizes.data(), from.data(), MPI_BYTE, received.data(), sizes_here.data(),
                      to.data(), MPI_BYTE, mpi),
        "MPI_Alltoallv");
  std::vector<Bytes> from_each;
  for (std::size_t r = 0; r < sizes.size(); ++r)
    from_each.emplace_back(received.begin() + to[r], received.begin() + to[r + 1]);
  return from_each;
}

}  // namespace rondo
