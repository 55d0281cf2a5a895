#include "petsc_matrix.hpp"

#include <cstdlib>
#include <string>

#include "rondo/core/error.hpp"

namespace rondo {
namespace {

void check(PetscErrorCode code, const char* call) {
  if (code == 0) return;
  const char* text = nullptr;
  PetscErrorMessage(code, &text, nullptr);
  throw Error(ExitCode::internal,
              std::string(call) + " failed: " + (text != nullptr ? text : "unknown error"));
}

void check_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) throw Error(ExitCode::internal, std::string(call) + " failed");
}

/// Called by MPI_Finalize before MPI ends.
int end_petsc(MPI_Comm, int, void*, void*) {
  PetscFinalize();
  return MPI_SUCCESS;
}

void reduce(MPI_Comm comm, std::vector<double>& values, MPI_Op operation) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, operation,
                          comm),
            "MPI_Allreduce");
}

/// Lends a vector's memory to a PETSc vector.
class Lent {
 public:
  Lent(Vec vec, const double* values) : vec_(vec) { check(VecPlaceArray(vec, values), "VecPlaceArray"); }
  ~Lent() { VecResetArray(vec_); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  Vec vec_;
};

}  // namespace

void start_petsc() {
  static const bool started = [] {
    int initialised = 0;
    MPI_Initialized(&initialised);
    if (!initialised) {
      check_mpi(MPI_Init(nullptr, nullptr), "MPI_Init");
      std::atexit([] { MPI_Finalize(); });
    }
    PETSC_COMM_WORLD = MPI_COMM_SELF;  // so that a rank can start it alone
    for (const char* option : {"-no_signal_handler", "-skip_petscrc"}) {
      check(PetscOptionsSetValue(nullptr, option, "true"), "PetscOptionsSetValue");
    }
    check(PetscInitializeNoArguments(), "PetscInitializeNoArguments");
    check(PetscPushErrorHandler(PetscIgnoreErrorHandler, nullptr), "PetscPushErrorHandler");
    int key = MPI_KEYVAL_INVALID;
    check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_petsc, &key, nullptr),
              "MPI_Comm_create_keyval");
    check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
    return true;
  }();
  static_cast<void>(started);
}

MPI_Comm mpi_of(const Communicator& communicator) {
  const void* comm = communicator.mpi_communicator();
  return comm != nullptr ? *static_cast<const MPI_Comm*>(comm) : MPI_COMM_SELF;
}

void reduce_sum(MPI_Comm comm, std::vector<double>& values) {
  reduce(comm, values, MPI_SUM);
}

void reduce_max(MPI_Comm comm, std::vector<double>& values) {
  reduce(comm, values, MPI_MAX);
}

std::uint64_t reduce_sum(MPI_Comm comm, std::uint64_t value) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, comm), "MPI_Allreduce");
  return value;
}

std::vector<double> gather_all(MPI_Comm comm, const std::vector<double>& own) {
  int size = 1;
  MPI_Comm_size(comm, &size);
  const int count = static_cast<int>(own.size());
  std::vector<int> counts(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, comm), "MPI_Allgather");
  std::vector<int> starts{0};
  for (const int c : counts) starts.push_back(starts.back() + c);
  std::vector<double> all(static_cast<std::size_t>(starts.back()));
  check_mpi(MPI_Allgatherv(own.data(), count, MPI_DOUBLE, all.data(), counts.data(), starts.data(),
                           MPI_DOUBLE, comm),
            "MPI_Allgatherv");
  return all;
}

PetscMatrix::PetscMatrix(MPI_Comm comm, const OwnColumns& columns, OwnRange own_rows, int num_rows) {
  check(
      MatCreateMPIAIJWithArrays(comm, columns.size(), own_rows.size(), PETSC_DETERMINE, num_rows,
                                columns.start.data(), columns.row.data(), columns.value.data(), &transposed_),
      "MatCreateMPIAIJWithArrays");
  check(VecCreateMPIWithArray(comm, 1, columns.size(), PETSC_DETERMINE, nullptr, &by_columns_),
        "VecCreateMPIWithArray");
  check(VecCreateMPIWithArray(comm, 1, own_rows.size(), num_rows, nullptr, &by_rows_),
        "VecCreateMPIWithArray");
}

PetscMatrix::~PetscMatrix() {
  VecDestroy(&by_rows_);
  VecDestroy(&by_columns_);
  MatDestroy(&transposed_);
}

void PetscMatrix::multiply(const std::vector<double>& x, std::vector<double>& result) const {
  const Lent from(by_columns_, x.data());
  const Lent to(by_rows_, result.data());
  check(MatMultTranspose(transposed_, by_columns_, by_rows_), "MatMultTranspose");
}

void PetscMatrix::multiply_transposed(const std::vector<double>& y, std::vector<double>& result) const {
  const Lent from(by_rows_, y.data());
  const Lent to(by_columns_, result.data());
  check(MatMult(transposed_, by_rows_, by_columns_), "MatMult");
}

}  // namespace rondo
