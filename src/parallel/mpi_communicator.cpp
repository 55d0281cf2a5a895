#include <mpi.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "mpi_check.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {
namespace {

/// By mpirun and `srun --mpi=pmix`; by `srun --mpi=pmi2` and older ones.
constexpr const char* kSetByLaunchers[] = {"PMIX_NAMESPACE", "PMI_FD", "PMI_RANK"};

class MpiCommunicator final : public Communicator {
 public:
  // A duplicate, so that no message here can meet one of a library or a test that uses MPI_COMM_WORLD.
  explicit MpiCommunicator(std::size_t max_message_bytes) : max_message_bytes_(max_message_bytes) {
    assert(max_message_bytes > 0 && max_message_bytes <= std::numeric_limits<int>::max());
    check(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
  }

  ~MpiCommunicator() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Comm_free(&communicator_);
  }

  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const void* mpi_communicator() const override { return &communicator_; }

  void barrier() const override { check(MPI_Barrier(communicator_), "MPI_Barrier"); }

  Bytes broadcast(Bytes bytes, int root) const override {
    assert(root >= 0 && root < size_);
    std::uint64_t total = bytes.size();
    check(MPI_Bcast(&total, 1, MPI_UINT64_T, root, communicator_), "MPI_Bcast");
    bytes.resize(total);
    for (std::uint64_t at = 0; at < total; at += max_message_bytes_) {
      const int count = static_cast<int>(std::min(max_message_bytes_, total - at));
      check(MPI_Bcast(bytes.data() + at, count, MPI_BYTE, root, communicator_), "MPI_Bcast");
    }
    return bytes;
  }

  std::vector<Bytes> all_gather(const Bytes& bytes) const override {
    const std::uint64_t own_size = bytes.size();
    std::vector<std::uint64_t> sizes(ranks());
    check(MPI_Allgather(&own_size, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, communicator_),
          "MPI_Allgather");
    std::vector<Bytes> gathered(ranks());
    for (std::size_t r = 0; r < ranks(); ++r) gathered[r].reserve(sizes[r]);
    // Displacements are ints as well, so the pieces of all ranks together stay below the limit.
    const std::uint64_t piece = std::max<std::uint64_t>(1, max_message_bytes_ / ranks());
    const std::uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
    for (std::uint64_t at = 0; at < longest; at += piece) gather_pieces(bytes, sizes, at, piece, gathered);
    return gathered;
  }

  double max(double value) const override { return reduce(value, MPI_MAX); }
  double sum(double value) const override { return reduce(value, MPI_SUM); }
  std::vector<double> sum(std::vector<double> values) const override {
    const std::size_t piece = std::max<std::size_t>(1, max_message_bytes_ / sizeof(double));
    for (std::size_t at = 0; at < values.size(); at += piece) {
      const auto count = static_cast<int>(std::min(piece, values.size() - at));
      check(MPI_Allreduce(MPI_IN_PLACE, values.data() + at, count, MPI_DOUBLE, MPI_SUM, communicator_),
            "MPI_Allreduce");
    }
    return values;
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(size_); }

  double reduce(double value, MPI_Op operation) const {
    double result = 0;
    check(MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, operation, communicator_), "MPI_Allreduce");
    return result;
  }

  /// Appends bytes [at, at + piece) of every rank's message to `gathered`.
  void gather_pieces(const Bytes& own, const std::vector<std::uint64_t>& sizes, std::uint64_t at,
                     std::uint64_t piece, std::vector<Bytes>& gathered) const {
    std::vector<int> counts(ranks());
    std::vector<int> displacements(ranks());
    int total = 0;
    for (std::size_t r = 0; r < ranks(); ++r) {
      counts[r] = static_cast<int>(std::min(piece, sizes[r] - std::min(at, sizes[r])));
      displacements[r] = total;
      total += counts[r];
    }
    Bytes received(static_cast<std::size_t>(total));
    const std::byte* first = own.data() + std::min<std::uint64_t>(at, own.size());
    check(MPI_Allgatherv(first, counts[static_cast<std::size_t>(rank_)], MPI_BYTE, received.data(),
                         counts.data(), displacements.data(), MPI_BYTE, communicator_),
          "MPI_Allgatherv");
    for (std::size_t r = 0; r < ranks(); ++r) {
      const auto from = received.begin() + displacements[r];
      gathered[r].insert(gathered[r].end(), from, from + counts[r]);
    }
  }

  std::uint64_t max_message_bytes_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
};

/// A program that no launcher started: without these, Open MPI starts a daemon beside it, which takes longer
/// than many a command, and makes a folder that it shares with others of its kind. One of them may remove
/// that while the next one makes its own inside, which then fails. The user's own settings stand.
constexpr const char* kAlone[][2] = {{"OMPI_MCA_ess_singleton_isolated", "1"},
                                     {"OMPI_MCA_orte_create_session_dirs", "0"}};

bool was_launched() {
  return std::any_of(std::begin(kSetByLaunchers), std::end(kSetByLaunchers),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

}  // namespace

std::unique_ptr<Communicator> make_world_communicator(std::size_t max_message_bytes) {
  return std::make_unique<MpiCommunicator>(max_message_bytes);
}

MpiSession::MpiSession(int* argc, char*** argv) {
  std::vector<const char*> ours;
  for (const auto& [name, value] : kAlone) {
    if (was_launched() || std::getenv(name) != nullptr) continue;
    setenv(name, value, 1);
    ours.push_back(name);
  }
  check(MPI_Init(argc, argv), "MPI_Init");
  for (const char* name : ours) unsetenv(name);  // an mpirun that this program starts has its own settings
}

MpiSession::~MpiSession() {
  MPI_Finalize();
}

void MpiSession::abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();  // MPI_Abort does not return, but is not declared so.
}

}  // namespace rondo
