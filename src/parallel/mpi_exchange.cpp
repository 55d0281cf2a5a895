#include <mpi.h>

#include <deque>
#include <list>
#include <utility>

#include "mpi_check.hpp"
#include "rondo/parallel/exchange.hpp"

namespace rondo {
namespace {

/// One rank without MPI: messages to itself.
class LocalExchange final : public Exchange {
 public:
  void send(int, Bytes message) override { queue_.push_back(std::move(message)); }
  std::optional<Arrival> poll() override {
    if (queue_.empty()) return std::nullopt;
    Arrival arrival{.from = 0, .bytes = std::move(queue_.front())};
    queue_.pop_front();
    return arrival;
  }
  void start_sum(std::vector<std::int64_t> values) override { sum_ = std::move(values); }
  std::optional<std::vector<std::int64_t>> finished_sum() override {
    return std::exchange(sum_, std::nullopt);
  }

 private:
  std::deque<Bytes> queue_;
  std::optional<std::vector<std::int64_t>> sum_;
};

class MpiExchange final : public Exchange {
 public:
  /// A duplicate, so that no message here can meet another one's.
  explicit MpiExchange(MPI_Comm communicator) {
    check(MPI_Comm_dup(communicator, &communicator_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
  }
  ~MpiExchange() override {
    forget_sent();
    // After an error elsewhere no rank receives the rest. MPI may still read its bytes, which are leaked.
    for (Outgoing& message : outgoing_) {
      MPI_Request_free(&message.request);
      new Bytes(std::move(message.bytes));
    }
    MPI_Comm_free(&communicator_);
  }
  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;

  void send(int rank, Bytes message) override {
    outgoing_.push_back({.bytes = std::move(message), .request = MPI_REQUEST_NULL});
    Outgoing& last = outgoing_.back();
    check(MPI_Isend(last.bytes.data(), static_cast<int>(last.bytes.size()), MPI_BYTE, rank, 0, communicator_,
                    &last.request),
          "MPI_Isend");
  }

  std::optional<Arrival> poll() override {
    forget_sent();
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    check(MPI_Improbe(MPI_ANY_SOURCE, 0, communicator_, &found, &message, &status), "MPI_Improbe");
    if (!found) return std::nullopt;
    int count = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
    Arrival arrival{.from = status.MPI_SOURCE, .bytes = Bytes(static_cast<std::size_t>(count))};
    // The message is here, and its sender waits for nothing.
    check(MPI_Mrecv(arrival.bytes.data(), count, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    return arrival;
  }

  void start_sum(std::vector<std::int64_t> values) override {
    sum_ = std::move(values);
    check(MPI_Iallreduce(MPI_IN_PLACE, sum_.data(), static_cast<int>(sum_.size()), MPI_INT64_T, MPI_SUM,
                         communicator_, &summing_),
          "MPI_Iallreduce");
  }

  std::optional<std::vector<std::int64_t>> finished_sum() override {
    if (summing_ == MPI_REQUEST_NULL) return std::nullopt;
    int done = 0;
    check(MPI_Test(&summing_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (!done) return std::nullopt;
    return sum_;
  }

 private:
  struct Outgoing {
    Bytes bytes;
    MPI_Request request;
  };

  /// Frees the messages at the front that have been sent; those behind them follow soon.
  void forget_sent() {
    while (!outgoing_.empty()) {
      int done = 0;
      check(MPI_Test(&outgoing_.front().request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (!done) return;
      outgoing_.pop_front();
    }
  }

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int size_ = 1;
  std::list<Outgoing> outgoing_;
  std::vector<std::int64_t> sum_;
  MPI_Request summing_ = MPI_REQUEST_NULL;
};

}  // namespace

std::unique_ptr<Exchange> make_exchange(const Communicator& communicator) {
  if (communicator.mpi_communicator() == nullptr) return std::make_unique<LocalExchange>();
  return std::make_unique<MpiExchange>(*static_cast<const MPI_Comm*>(communicator.mpi_communicator()));
}

}  // namespace rondo
