#include "reference.hpp"

#include <algorithm>

#include "rondo/execution/execute.hpp"

namespace rondo::execution {
namespace {

using msccl::Coll;

Bytes input_of(const Program& program, int gpu, int repetition) {
  Bytes bytes(program.input[static_cast<std::size_t>(gpu)].bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = input_byte(gpu, i, repetition);
  return bytes;
}

void put(Bytes& to, std::size_t offset, const Bytes& from, std::size_t begin, std::size_t count) {
  std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(begin), count,
              to.begin() + static_cast<std::ptrdiff_t>(offset));
}

class Reference {
 public:
  Reference(const Program& program, const Deal& deal, const Exchange& exchange, int repetition)
      : program_(program),
        deal_(deal),
        exchange_(exchange),
        repetition_(repetition),
        outputs_(static_cast<std::size_t>(program.num_gpus())) {}

  std::vector<Bytes> make(std::byte filler) && {
    switch (program_.coll) {
      case Coll::allgather:
      case Coll::gather:
        gather();
        break;
      case Coll::alltoall:
        all_to_all();
        break;
      case Coll::broadcast:
      case Coll::scatter:
        from_root();
        break;
      case Coll::allreduce:
      case Coll::reduce:
      case Coll::reduce_scatter:
        reduce();
        break;
      case Coll::custom:
        deliver(filler);
        break;
    }
    return std::move(outputs_);
  }

 private:
  template <class Make>
  void for_own_gpus(const Make& make) {
    for (int g = deal_.first_of(deal_.rank); g < deal_.first_of(deal_.rank + 1); ++g) {
      outputs_[static_cast<std::size_t>(g)] = make(g);
    }
  }
  Bytes input(int gpu) const { return input_of(program_, gpu, repetition_); }
  std::size_t most() const { return static_cast<std::size_t>(deal_.most()); }

  /// Every rank contributes the inputs of its GPUs, and zeros where it has fewer than others.
  void gather() {
    const std::size_t part = program_.input.front().bytes;
    Bytes own(most() * part);
    std::size_t at = 0;
    for (int g = deal_.first_of(deal_.rank); g < deal_.first_of(deal_.rank + 1); ++g, at += part) {
      put(own, at, input(g), 0, part);
    }
    const Bytes padded = exchange_.all_gather(own);
    Bytes whole(static_cast<std::size_t>(deal_.gpus) * part);
    at = 0;
    for (int r = 0; r < deal_.ranks; ++r) {
      const std::size_t count = static_cast<std::size_t>(deal_.count_of(r)) * part;
      put(whole, at, padded, static_cast<std::size_t>(r) * most() * part, count);
      at += count;
    }
    for_own_gpus(
        [&](int g) { return program_.coll == Coll::allgather || g == program_.root ? whole : Bytes{}; });
  }

  /// From rank r to rank s: for each GPU of r, for each GPU of s, the part in between; padded to equal
  /// pieces.
  void all_to_all() {
    const std::size_t part = program_.size_bytes / static_cast<std::size_t>(deal_.gpus);
    const std::size_t piece = most() * most() * part;
    Bytes own(static_cast<std::size_t>(deal_.ranks) * piece);
    for (int g = deal_.first_of(deal_.rank); g < deal_.first_of(deal_.rank + 1); ++g) {
      const Bytes data = input(g);
      const auto row = static_cast<std::size_t>(g - deal_.first_of(deal_.rank));
      for (int s = 0; s < deal_.ranks; ++s) {
        const std::size_t at = static_cast<std::size_t>(s) * piece + row * most() * part;
        put(own, at, data, static_cast<std::size_t>(deal_.first_of(s)) * part,
            static_cast<std::size_t>(deal_.count_of(s)) * part);
      }
    }
    const Bytes received = exchange_.all_to_all(own);
    for_own_gpus([&](int g) {
      Bytes output(program_.size_bytes);
      const auto column = static_cast<std::size_t>(g - deal_.first_of(deal_.rank));
      for (int from = 0; from < deal_.gpus; ++from) {
        const int r = deal_.rank_of(from);
        const auto row = static_cast<std::size_t>(from - deal_.first_of(r));
        put(output, static_cast<std::size_t>(from) * part, received,
            static_cast<std::size_t>(r) * piece + (row * most() + column) * part, part);
      }
      return output;
    });
  }

  void from_root() {
    const int rank = deal_.rank_of(program_.root);
    const Bytes own = rank == deal_.rank
                          ? input(program_.root)
                          : Bytes(program_.input[static_cast<std::size_t>(program_.root)].bytes);
    const Bytes data = exchange_.broadcast(own, rank);
    for_own_gpus([&](int g) {
      const std::size_t bytes = program_.output[static_cast<std::size_t>(g)].bytes;
      Bytes output(bytes);
      put(output, 0, data, program_.coll == Coll::scatter ? static_cast<std::size_t>(g) * bytes : 0, bytes);
      return output;
    });
  }

  /// The GPUs of a rank are summed here, the ranks by MPI.
  void reduce() {
    Bytes own(program_.size_bytes);
    for (int g = deal_.first_of(deal_.rank); g < deal_.first_of(deal_.rank + 1); ++g) {
      const Bytes data = input(g);
      for (std::size_t i = 0; i < own.size(); ++i) {
        own[i] =
            static_cast<std::byte>(std::to_integer<unsigned>(own[i]) + std::to_integer<unsigned>(data[i]));
      }
    }
    const Bytes sum = exchange_.sum_bytes(own);
    for_own_gpus([&](int g) {
      if (program_.coll == Coll::reduce) return g == program_.root ? sum : Bytes{};
      const std::size_t bytes = program_.output[static_cast<std::size_t>(g)].bytes;
      Bytes output(bytes);
      put(output, 0, sum, program_.coll == Coll::reduce_scatter ? static_cast<std::size_t>(g) * bytes : 0,
          bytes);
      return output;
    });
  }

  void deliver(std::byte filler) {
    if (!program_.knows_result) return;
    for_own_gpus([&](int g) { return Bytes(program_.output[static_cast<std::size_t>(g)].bytes, filler); });
    for (const Delivery& d : program_.deliveries) {
      if (!deal_.mine(d.to)) continue;
      Bytes& output = outputs_[static_cast<std::size_t>(d.to)];
      for (std::size_t i = 0; i < d.bytes; ++i)
        output[d.output + i] = input_byte(d.from, d.input + i, repetition_);
    }
  }

  const Program& program_;
  const Deal& deal_;
  const Exchange& exchange_;
  int repetition_;
  std::vector<Bytes> outputs_;
};

}  // namespace

std::byte input_byte(int gpu, std::size_t i, int repetition) {
  // The finaliser of splitmix64.
  std::uint64_t x = (static_cast<std::uint64_t>(gpu) << 40) + (static_cast<std::uint64_t>(repetition) << 32) +
                    i / 8 + 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  x ^= x >> 31;
  return static_cast<std::byte>(x >> (8 * (i % 8)));
}

std::vector<Bytes> reference_outputs(const Program& program, const Deal& deal, const Exchange& exchange,
                                     int repetition, std::byte filler) {
  return Reference(program, deal, exchange, repetition).make(filler);
}

const char* reference_name(msccl::Coll coll) {
  switch (coll) {
    case Coll::allgather:
      return "MPI_Allgather";
    case Coll::gather:
      return "MPI_Allgather, at the root,";
    case Coll::alltoall:
      return "MPI_Alltoall";
    case Coll::broadcast:
      return "MPI_Bcast";
    case Coll::scatter:
      return "the parts of MPI_Bcast";
    case Coll::allreduce:
      return "MPI_Allreduce";
    case Coll::reduce:
      return "MPI_Allreduce, at the root,";
    case Coll::reduce_scatter:
      return "the parts of MPI_Allreduce";
    case Coll::custom:
      break;
  }
  return "what the origins hold";
}

}  // namespace rondo::execution
