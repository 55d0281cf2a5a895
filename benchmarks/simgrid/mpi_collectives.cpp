// One collective of MPI under SimGrid's SMPI: what a library that knows nothing of the fabric takes on it.
// Arguments: allgather, reducescatter, allreduce or alltoall; bytes, as rondo solve --size counts them.
// Prints the simulated time from a barrier until the last rank has ended, in microseconds.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string collective = argc == 3 ? argv[1] : "";
  const double bytes = argc == 3 ? std::atof(argv[2]) : 0;
  // Whole floats, the same for each rank; all ranks have one folded buffer, for their data does not matter.
  const int part = static_cast<int>(bytes / ranks / sizeof(float));
  const std::size_t room = static_cast<std::size_t>(part) * static_cast<std::size_t>(ranks) * sizeof(float);
  void* const from = SMPI_SHARED_MALLOC(room);
  void* const to = SMPI_SHARED_MALLOC(room);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  int known = MPI_SUCCESS;
  if (collective == "allgather") {
    MPI_Allgather(from, part, MPI_FLOAT, to, part, MPI_FLOAT, MPI_COMM_WORLD);
  } else if (collective == "reducescatter") {
    MPI_Reduce_scatter_block(from, to, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (collective == "allreduce") {
    MPI_Allreduce(from, to, part * ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (collective == "alltoall") {
    MPI_Alltoall(from, part, MPI_FLOAT, to, part, MPI_FLOAT, MPI_COMM_WORLD);
  } else {
    known = MPI_ERR_ARG;
  }
  const double mine = MPI_Wtime() - begin;
  double slowest = 0;
  MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0 && known == MPI_SUCCESS) std::printf("%.9f\n", slowest * 1e6);
  SMPI_SHARED_FREE(from);
  SMPI_SHARED_FREE(to);
  MPI_Finalize();
  return known == MPI_SUCCESS ? 0 : 64;
}
