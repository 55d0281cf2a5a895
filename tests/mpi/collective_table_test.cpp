#include "rondo/core/collective_table.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <string>
#include <vector>

namespace rondo::collective_table_test {
namespace {

/// One number a part; no two inputs have the same.
int input_of(std::size_t gpu, std::size_t part) {
  return static_cast<int>(1000 * gpu + part + 1);
}

/// Every rank is a GPU: what MPI's own collective makes of one number a part is what the row says.
template <class Call>
void expect_as_mpi(const std::string& name, const Call& call) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto gpus = static_cast<std::size_t>(size), mine = static_cast<std::size_t>(rank);
  const Collective collective = *find_collective(name);
  for (std::size_t root = 0; root < (collective->has_root ? gpus : 1); ++root) {
    std::vector<int> input, output(collective->output_parts(gpus), -1);
    for (std::size_t p = 0; p < collective->input_parts(gpus); ++p) input.push_back(input_of(mine, p));
    call(input.data(), output.data(), static_cast<int>(root));
    collective->for_each_output_part(gpus, root, [&](const OutputPart& to, const InputPart& from) {
      if (to.gpu != mine) return;
      int expected = 0;
      for (std::size_t g = 0; g < gpus; ++g) {
        if (from.gpu == InputPart::kSumOfAll || from.gpu == g) expected += input_of(g, from.part);
      }
      EXPECT_EQ(output[to.part], expected) << name << " part " << to.part << " root " << root;
    });
  }
}

TEST(CollectiveTable, RowsSayWhatMpiDoes) {
  const MPI_Comm world = MPI_COMM_WORLD;
  expect_as_mpi("allgather",
                [&](const int* in, int* out, int) { MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, world); });
  expect_as_mpi("alltoall",
                [&](const int* in, int* out, int) { MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, world); });
  expect_as_mpi("broadcast", [&](const int* in, int* out, int root) {
    *out = *in;
    MPI_Bcast(out, 1, MPI_INT, root, world);
  });
  expect_as_mpi("scatter", [&](const int* in, int* out, int root) {
    MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, root, world);
  });
  expect_as_mpi("gather", [&](const int* in, int* out, int root) {
    MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, root, world);
  });
  expect_as_mpi("allreduce",
                [&](const int* in, int* out, int) { MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, world); });
  expect_as_mpi("reduce_scatter", [&](const int* in, int* out, int) {
    MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_SUM, world);
  });
  expect_as_mpi("reduce", [&](const int* in, int* out, int root) {
    MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, root, world);
  });
}

}  // namespace
}  // namespace rondo::collective_table_test
