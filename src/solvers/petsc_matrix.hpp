#pragma once

#include <mpi.h>
#include <petscmat.h>

#include <cstdint>
#include <vector>

#include "rondo/parallel/communicator.hpp"

namespace rondo {

/// Starts PETSc once, for this rank alone, without command line, resource files and signal handlers; it ends
/// with MPI. Starts MPI where the program has not.
void start_petsc();

/// The communicator for PETSc's objects: that of MPI, or this rank alone.
MPI_Comm mpi_of(const Communicator& communicator);

/// Sums over the ranks, or the greatest values, in place.
void reduce_sum(MPI_Comm comm, std::vector<double>& values);
void reduce_max(MPI_Comm comm, std::vector<double>& values);
/// Modulo 2^64.
std::uint64_t reduce_sum(MPI_Comm comm, std::uint64_t value);

/// A range of rows or columns, [begin, end).
struct OwnRange {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
};

/// The values of all ranks' ranges, in the order of the ranks.
std::vector<double> gather_all(MPI_Comm comm, const std::vector<double>& own);

/// Own columns, compressed; rows are those of the whole matrix.
struct OwnColumns {
  std::vector<int> start = {0};
  std::vector<int> row;
  std::vector<double> value;
  int size() const { return static_cast<int>(start.size()) - 1; }
};

/// A distributed matrix A; vectors are the owned pieces. A rank assembles its own columns, that is its rows
/// of A', and only values of rows that other ranks own travel; in flows by origin these are the few capacity
/// rows.
class PetscMatrix {
 public:
  /// Collective.
  PetscMatrix(MPI_Comm comm, const OwnColumns& columns, OwnRange own_rows, int num_rows);
  ~PetscMatrix();
  PetscMatrix(const PetscMatrix&) = delete;
  PetscMatrix& operator=(const PetscMatrix&) = delete;

  /// Collective: result = A x, by rows.
  void multiply(const std::vector<double>& x, std::vector<double>& result) const;
  /// Collective: result = A' y, by columns.
  void multiply_transposed(const std::vector<double>& y, std::vector<double>& result) const;

 private:
  Mat transposed_ = nullptr;
  Vec by_columns_ = nullptr;
  Vec by_rows_ = nullptr;
};

}  // namespace rondo
