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

/// A range of rows or columns, [begin, end).
struct OwnRange {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
};

/// This rank's share of `count`, shares as even as can be.
OwnRange own_range(MPI_Comm comm, int count);

/// The values of all ranks' ranges, in the order of the ranks.
std::vector<double> gather_all(MPI_Comm comm, const std::vector<double>& own);

/// Own rows, compressed; columns are those of the whole matrix.
struct OwnRows {
  std::vector<int> start = {0};
  std::vector<int> column;
  std::vector<double> value;
  int size() const { return static_cast<int>(start.size()) - 1; }
};

/// A distributed matrix; vectors are the owned pieces.
class PetscMatrix {
 public:
  /// Collective.
  PetscMatrix(MPI_Comm comm, const OwnRows& rows, OwnRange own_columns, int num_columns);
  ~PetscMatrix();
  PetscMatrix(const PetscMatrix&) = delete;
  PetscMatrix& operator=(const PetscMatrix&) = delete;

  /// Collective: result = A x, by rows.
  void multiply(const std::vector<double>& x, std::vector<double>& result) const;
  /// Collective: result = A' y, by columns.
  void multiply_transposed(const std::vector<double>& y, std::vector<double>& result) const;

 private:
  Mat matrix_ = nullptr;
  Vec by_columns_ = nullptr;
  Vec by_rows_ = nullptr;
};

}  // namespace rondo
