#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "rondo/core/error.hpp"
#include "rondo/profile/wire.hpp"

namespace rondo::profile {
namespace {

constexpr int kAnswerTags = 16384;  ///< MPI promises tags up to 32767

void require(int code, const char* call) {
  if (code != MPI_SUCCESS) throw Error(ExitCode::internal, std::string(call) + " failed");
}

class MpiWire final : public Wire {
 public:
  explicit MpiWire(const Communicator& communicator) : communicator_(communicator) {
    if (communicator.mpi_communicator() == nullptr || communicator.size() < 2) {
      throw Error(
          ExitCode::usage,
          "a profile times messages between ranks, and there is one; start two or more: mpirun -n 2 rondo "
          "profile ...");
    }
    require(MPI_Comm_dup(*static_cast<const MPI_Comm*>(communicator.mpi_communicator()), &comm_),
            "MPI_Comm_dup");
  }
  ~MpiWire() override { MPI_Comm_free(&comm_); }
  MpiWire(const MpiWire&) = delete;
  MpiWire& operator=(const MpiWire&) = delete;

  int size() const override { return communicator_.size(); }

  std::vector<std::vector<std::vector<double>>> time_us(const std::vector<Round>& rounds) override {
    std::vector<double> own;
    for (const Round& round : rounds) {
      make_room(round);
      const std::vector<double> times = round.flows.size() == 1 ? alone(round) : together(round);
      own.insert(own.end(), times.begin(), times.end());
    }
    return of_senders(rounds, own);
  }

 private:
  /// Of flow f in repetition r: f * repetitions + r; of other senders' flows 0.
  using Times = std::vector<double>;

  Times alone(const Round& round) {
    const Flow& flow = round.flows.front();
    Times times(static_cast<std::size_t>(round.repetitions));
    const bool receives = communicator_.rank() == flow.to;
    if (receives) receive(flow, 0, 0);
    require(MPI_Barrier(comm_), "MPI_Barrier");
    for (double& time : times) {
      if (communicator_.rank() == flow.from) {
        listen(flow, 0);
        const double begin = MPI_Wtime();
        for (int m = 0; m < flow.messages; ++m) send(flow, 0);
        wait_for_all();
        time = 1e6 * (MPI_Wtime() - begin);
      } else if (receives) {
        wait_for_all();
        // The next message finds its receiver waiting.
        if (&time != &times.back()) receive(flow, 0, 0);
        answer(flow, 0);
      }
    }
    wait_for_all();
    return times;
  }

  Times together(const Round& round) {
    const std::size_t repetitions = static_cast<std::size_t>(round.repetitions);
    Times times(round.flows.size() * repetitions);
    for (std::size_t r = 0; r < repetitions; ++r)
      once_together(round, [&](std::size_t flow, double us) { times[flow * repetitions + r] = us; });
    return times;
  }

  template <class Keep>
  void once_together(const Round& round, const Keep& keep) {
    const int rank = communicator_.rank();
    std::vector<std::size_t> flow_of;  // of each request
    std::vector<int> missing(round.flows.size());
    std::size_t at = 0;
    for (std::size_t f = 0; f < round.flows.size(); ++f) {
      const Flow& flow = round.flows[f];
      if (rank == flow.to) {
        receive(flow, static_cast<int>(f), at);
        at += static_cast<std::size_t>(flow.messages * flow.bytes);
        missing[f] = flow.messages;
      }
      if (rank == flow.from) listen(flow, static_cast<int>(f));
      flow_of.resize(requests_.size(), f);
    }
    require(MPI_Barrier(comm_), "MPI_Barrier");
    const double begin = MPI_Wtime();
    const std::size_t waited_for = requests_.size();
    for (std::size_t f = 0; f < round.flows.size(); ++f) {
      for (int m = 0; m < round.flows[f].messages && rank == round.flows[f].from; ++m)
        send(round.flows[f], static_cast<int>(f));
    }
    for (std::size_t left = waited_for; left > 0; --left) {
      int which = 0;
      require(MPI_Waitany(static_cast<int>(waited_for), requests_.data(), &which, MPI_STATUS_IGNORE),
              "MPI_Waitany");
      const std::size_t f = flow_of[static_cast<std::size_t>(which)];
      if (rank == round.flows[f].from) {
        keep(f, 1e6 * (MPI_Wtime() - begin));
      } else if (--missing[f] == 0) {
        answer(round.flows[f], static_cast<int>(f));
      }
    }
    wait_for_all();
  }

  /// Before any message of the round: requests hold addresses. Buffers stay from round to round, for what is
  /// touched for the first time would count as slow.
  void make_room(const Round& round) {
    std::size_t sends = 0;
    std::size_t receives = 0;
    for (const Flow& flow : round.flows) {
      sends = std::max(sends, static_cast<std::size_t>(flow.bytes));
      if (flow.to == communicator_.rank()) receives += static_cast<std::size_t>(flow.messages * flow.bytes);
    }
    if (sent_.size() < sends) sent_.resize(sends);
    if (buffer_.size() < receives) buffer_.resize(receives);
    if (heard_.size() < round.flows.size()) heard_.resize(round.flows.size());
  }

  void receive(const Flow& flow, int tag, std::size_t at) {
    for (int m = 0; m < flow.messages; ++m, at += static_cast<std::size_t>(flow.bytes)) {
      requests_.push_back(MPI_REQUEST_NULL);
      require(MPI_Irecv(buffer_.data() + at, static_cast<int>(flow.bytes), MPI_BYTE, flow.from, tag, comm_,
                        &requests_.back()),
              "MPI_Irecv");
    }
  }
  void listen(const Flow& flow, int tag) {
    requests_.push_back(MPI_REQUEST_NULL);
    require(MPI_Irecv(&heard_[static_cast<std::size_t>(tag)], 1, MPI_BYTE, flow.to, kAnswerTags + tag, comm_,
                      &requests_.back()),
            "MPI_Irecv");
  }
  void send(const Flow& flow, int tag) {
    requests_.push_back(MPI_REQUEST_NULL);
    require(MPI_Isend(sent_.data(), static_cast<int>(flow.bytes), MPI_BYTE, flow.to, tag, comm_,
                      &requests_.back()),
            "MPI_Isend");
  }
  void answer(const Flow& flow, int tag) {
    requests_.push_back(MPI_REQUEST_NULL);
    require(MPI_Isend(&said_, 1, MPI_BYTE, flow.from, kAnswerTags + tag, comm_, &requests_.back()),
            "MPI_Isend");
  }
  void wait_for_all() {
    require(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
            "MPI_Waitall");
    requests_.clear();
  }

  /// Every time from the rank that measured it.
  std::vector<std::vector<std::vector<double>>> of_senders(const std::vector<Round>& rounds,
                                                           const std::vector<double>& own) const {
    Bytes bytes(own.size() * sizeof(double));
    if (!own.empty()) std::memcpy(bytes.data(), own.data(), bytes.size());
    const std::vector<Bytes> all = communicator_.all_gather(bytes);
    std::vector<std::vector<std::vector<double>>> times;
    std::size_t at = 0;
    for (const Round& round : rounds) {
      times.emplace_back();
      for (const Flow& flow : round.flows) {
        times.back().emplace_back(static_cast<std::size_t>(round.repetitions));
        for (double& time : times.back().back()) {
          std::memcpy(&time, all[static_cast<std::size_t>(flow.from)].data() + at * sizeof(double),
                      sizeof(double));
          ++at;
        }
      }
    }
    return times;
  }

  const Communicator& communicator_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<MPI_Request> requests_;
  Bytes buffer_;
  Bytes sent_;
  Bytes heard_;
  std::byte said_ = {};
};

}  // namespace

std::unique_ptr<Wire> make_mpi_wire(const Communicator& communicator) {
  return std::make_unique<MpiWire>(communicator);
}

}  // namespace rondo::profile
