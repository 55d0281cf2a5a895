#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rondo {

using Bytes = std::vector<std::byte>;

/// The ranks that solve together. Every member but rank(), size() and is_root() is collective: all ranks call
/// it in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  bool is_root() const { return rank() == 0; }

  virtual void barrier() const = 0;
  /// Returns the root's bytes on every rank; what the others pass is ignored.
  virtual Bytes broadcast(Bytes bytes, int root) const = 0;
  /// Returns every rank's bytes, in rank order, on every rank.
  virtual std::vector<Bytes> all_gather(const Bytes& bytes) const = 0;

  virtual double max(double value) const = 0;
  virtual double sum(double value) const = 0;
  /// Element by element, in an order that depends on the number of ranks: bit-identical where every sum is
  /// exact, as it is of integers below 2^53 and where but one rank has something else than 0.
  virtual std::vector<double> sum(std::vector<double> values) const = 0;

  /// The MPI_Comm behind it, for libraries that speak MPI themselves (HDF5, PETSc); null where there is none.
  virtual const void* mpi_communicator() const { return nullptr; }
};

/// One rank, no MPI.
std::unique_ptr<Communicator> make_local_communicator();
/// All ranks of the job. MPI has to be initialised (see MpiSession). Collective. What is longer than
/// `max_message_bytes` (at most 2^31 - 1, MPI's counts being ints) goes in pieces.
std::unique_ptr<Communicator> make_world_communicator(std::size_t max_message_bytes = std::size_t{1} << 30);

/// Initialises MPI for the life of the object.
class MpiSession {
 public:
  MpiSession(int* argc, char*** argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// Ends all ranks with `exit_code`: for a failure of one rank alone, which the others would wait for.
  [[noreturn]] static void abort(int exit_code);
};

/// Collective. Runs `work` on the root alone and shares its outcome with all ranks: where it throws Error,
/// every rank throws the same Error; otherwise every rank gets the returned bytes.
Bytes on_root(const Communicator& communicator, const std::function<Bytes()>& work);

Bytes to_bytes(const std::string& text);
std::string to_text(const Bytes& bytes);

}  // namespace rondo
