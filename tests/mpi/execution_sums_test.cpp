#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "expect_error.hpp"
#include "rondo/execution/execute.hpp"
#include "sum_schedules.hpp"
#include "topologies.hpp"

/// Schedules that combine, with real numbers.
namespace rondo::execution::execution_sums_test {
namespace {

constexpr Arithmetic kDoubles{Number::float64, Reduction::sum};

Topology full_of(int gpus) {
  return *generated("full", {{"gpus", std::to_string(gpus)}, {"bandwidth_GBps", "1"}, {"latency_us", "1"}});
}
Demand demand_of(Collective collective, int gpus, int chunks) {
  return make_demand(collective, 1000.0 * gpus * chunks, static_cast<std::size_t>(gpus), chunks);
}

/// Rings, butterflies and trees of eight GPUs.
std::vector<ProvenSchedule> textbook_schedules() {
  const Topology full = full_of(8);
  std::vector<ProvenSchedule> all;
  for (const bool spread : {false, true}) {
    const Collective collective = spread ? Collective::allreduce : Collective::reduce_scatter;
    all.push_back(in_rounds(full, demand_of(collective, 8, spread ? 16 : 2), ring_sums(8, 2, spread)));
    all.push_back(in_rounds(full, demand_of(collective, 8, spread ? 8 : 1), halving_sums(8, 1, spread)));
    all.push_back(in_rounds(full, demand_of(spread ? Collective::allreduce : Collective::reduce, 8, 3),
                            tree_sums(8, 3, spread)));
  }
  all.push_back(in_rounds(full, demand_of(Collective::allreduce, 8, 2), doubling_sums(8, 2)));
  return all;
}

ExecuteResult run(const Program& program, const ExecuteOptions& options = {}) {
  return execute(program, *make_world_communicator(), options);
}

TEST(ExecuteSums, TextbookSchedulesEndAsDefined) {
  for (const ProvenSchedule& proven : textbook_schedules()) {
    const Program program = from_schedule(proven, 10'000, kDoubles);
    EXPECT_EQ(program.size_bytes % 8, 0U);
    run(program, {.repeat = 2});
  }
}

TEST(ExecuteSums, OfAllNumbersAndReductions) {
  const ProvenSchedule proven =
      in_rounds(full_of(4), demand_of(Collective::allreduce, 4, 4), halving_sums(4, 1, true));
  for (const Number number : {Number::uint8, Number::int64, Number::float32, Number::float64}) {
    for (const Reduction reduction : {Reduction::sum, Reduction::prod, Reduction::max, Reduction::min})
      run(from_schedule(proven, 4000, {number, reduction}));
  }
}

/// The message of the error that running it ends with.
std::string fault(const Topology& topology, const Demand& demand, const SumRounds& rounds,
                  Arithmetic arithmetic = kDoubles) {
  try {
    run(from_schedule(in_rounds(topology, demand, rounds), 4000, arithmetic));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
  return "";
}

TEST(ExecuteSums, WhatIsLostOrAddedTwiceShows) {
  const Topology full = full_of(4);
  const Demand demand = demand_of(Collective::reduce, 4, 1);
  const SumRounds right = {{{0, 1, 0}, {0, 3, 2}}, {{0, 2, 0}}};
  EXPECT_EQ(fault(full, demand, right), "");
  const auto expect_wrong = [&](const SumRounds& rounds, Arithmetic arithmetic = kDoubles) {
    const std::string text = fault(full, demand, rounds, arithmetic);
    EXPECT_NE(text.find("gpu 0: number "), std::string::npos) << text;
  };
  expect_wrong({{{0, 1, 0}}, {{0, 2, 0}}});                           // 3 is lost
  expect_wrong({{{0, 1, 0}, {0, 3, 2}, {0, 3, 0}}, {{0, 2, 0}}});     // 3 is added twice
  expect_wrong({{{0, 1, 0}, {0, 3, 2}}, {{0, 2, 0, SendOp::copy}}});  // 0 and 1 are overwritten
  expect_wrong({{{0, 1, 0}, {0, 3, 2}, {0, 2, 0}}});                  // 2 leaves too early
  expect_wrong({{{0, 1, 0}}, {{0, 2, 0}}}, {Number::int64, Reduction::max});
  const std::string never = fault(full, demand_of(Collective::allreduce, 4, 1), right);
  EXPECT_NE(never.find("(never written, it seems), but allreduce (sum of double) asks for"),
            std::string::npos)
      << never;
}

TEST(ExecuteSums, CustomDemandsAddOverRelays) {
  const auto gpus = [](std::vector<int> numbers) {
    std::vector<GpuId> all;
    for (const int g : numbers) all.push_back(GpuId{g});
    return all;
  };
  Contribution sum{.origin = GpuId{0}, .bytes = 3000, .destinations = gpus({2, 3})};
  sum.sources = gpus({0, 1});
  sum.reduce = true;
  Contribution anyones{.origin = GpuId{1}, .bytes = 2000, .destinations = gpus({2})};
  anyones.sources = gpus({0, 1});
  const Demand demand(Collective::custom, 5000, 4, {sum, anyones}, 1);
  const SumRounds rounds = {{{0, 0, 2}, {1, 1, 2, SendOp::copy}}, {{0, 1, 2}}, {{0, 2, 3, SendOp::copy}}};
  EXPECT_EQ(fault(full_of(4), demand, rounds), "");
  sum.held = {{GpuId{2}, gpus({0})}};
  const Demand held(Collective::custom, 3000, 4, {sum}, 1);
  expect_error(ExitCode::unavailable, {"GPU 2 holds a partial sum at first"}, [&] {
    from_schedule(in_rounds(full_of(4), held, {{{0, 1, 2}}}), 3000);
  });
}

TEST(ExecuteSums, WhatASwitchAddsIsAddedAtItsEnd) {
  std::vector<Node> nodes(3);
  nodes.push_back(network_switch());
  nodes.back().reduce = true;
  const Topology topology = *fabric(nodes, {link(0, 3), link(1, 3), link(3, 2)});
  ProvenSchedule proven{.topology = topology, .demand = demand_of(Collective::reduce, 3, 1), .schedule = {}};
  proven.demand = make_demand(Collective::reduce, 1000, 3, 1, GpuId{2});
  for (const auto& [link, start_us] : {std::pair{0, 0.0}, {1, 0.0}, {2, 1.0}}) {
    proven.schedule.sends.push_back({.chunk = ChunkId{0},
                                     .link = LinkId{link},
                                     .start_us = start_us,
                                     .end_us = start_us + 1,
                                     .arrival_us = start_us + 2,
                                     .op = SendOp::reduce,
                                     .transfer = 0});
  }
  EXPECT_EQ(run(from_schedule(proven, 1000, kDoubles)).messages, 2);
}

// ---- Beside MPI's own collectives: every rank is a GPU.

template <class T>
std::vector<T> numbers_in(const Bytes& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

/// Runs the schedule and MPI's collective on the same inputs. Both round: sums may differ by 2 (n - 1) eps
/// times the magnitude of their summands, at most 1.25 each.
template <class T, class Call>
void expect_as_mpi(const ProvenSchedule& proven, Arithmetic arithmetic, const Call& call) {
  const auto world = make_world_communicator();
  const auto rank = static_cast<std::size_t>(world->rank());
  const Program program = from_schedule(proven, 12'345, arithmetic);
  const std::vector<Bytes> outputs = run(program, {.keep_outputs = true}).outputs;
  const std::vector<T> input = numbers_in<T>(input_of(program, world->rank(), 0));
  const std::vector<T> ours = numbers_in<T>(outputs[rank]);
  std::vector<T> theirs(ours.size());
  if (!call(input, theirs)) return;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      const double n = world->size();
      EXPECT_NEAR(ours[i], theirs[i], 2 * (n - 1) * n * 1.25 * std::numeric_limits<T>::epsilon()) << i;
    } else {
      EXPECT_EQ(ours[i], theirs[i]) << i;
    }
  }
}

template <class T>
void expect_as_mpi_for(Number number, MPI_Datatype type) {
  int gpus = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &gpus);
  ASSERT_GE(gpus, 2);
  const Topology full = full_of(gpus);
  const auto count = [](const std::vector<T>& numbers) { return static_cast<int>(numbers.size()); };
  for (const auto& [reduction, op] : {std::pair{Reduction::sum, MPI_SUM}, {Reduction::max, MPI_MAX}}) {
    const Arithmetic arithmetic{number, reduction};
    expect_as_mpi<T>(in_rounds(full, demand_of(Collective::allreduce, gpus, gpus), ring_sums(gpus, 1, true)),
                     arithmetic, [&, o = op](const std::vector<T>& in, std::vector<T>& out) {
                       MPI_Allreduce(in.data(), out.data(), count(out), type, o, MPI_COMM_WORLD);
                       return true;
                     });
    expect_as_mpi<T>(
        in_rounds(full, demand_of(Collective::reduce_scatter, gpus, 2), ring_sums(gpus, 2, false)),
        arithmetic, [&, o = op](const std::vector<T>& in, std::vector<T>& out) {
          MPI_Reduce_scatter_block(in.data(), out.data(), count(out), type, o, MPI_COMM_WORLD);
          return true;
        });
    expect_as_mpi<T>(in_rounds(full, demand_of(Collective::reduce, gpus, 3), tree_sums(gpus, 3, false)),
                     arithmetic, [&, o = op](const std::vector<T>& in, std::vector<T>& out) {
                       int rank = 0;
                       MPI_Comm_rank(MPI_COMM_WORLD, &rank);
                       MPI_Reduce(in.data(), out.data(), count(in), type, o, 0, MPI_COMM_WORLD);
                       return rank == 0;
                     });
  }
}

TEST(ExecuteSums, AreWhatMpiMakesOfInt64) {
  expect_as_mpi_for<std::int64_t>(Number::int64, MPI_INT64_T);
}
TEST(ExecuteSums, AreWhatMpiMakesOfDouble) {
  expect_as_mpi_for<double>(Number::float64, MPI_DOUBLE);
}
TEST(ExecuteSums, AreWhatMpiMakesOfFloat) {
  expect_as_mpi_for<float>(Number::float32, MPI_FLOAT);
}

}  // namespace
}  // namespace rondo::execution::execution_sums_test
