#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rondo/core/schedule.hpp"
#include "rondo/execution/arithmetic.hpp"
#include "rondo/msccl/program.hpp"
#include "rondo/mscclpp/plan.hpp"

/// What is executed: lanes of steps on GPUs with memory, made from a schedule or from an MSCCL program.
namespace rondo::execution {

/// Bytes [offset, offset + bytes) of a GPU's memory.
struct Region {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct StepRef {
  int lane = -1;
  int step = -1;
};

inline constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

/// One step: takes a message (if `receive_from`), combines the source with it or takes the source alone (if
/// `src`), writes the result (if `dst`; `add` combines it with what is there), and sends it (if `send_to`).
struct Step {
  int receive_from = -1;       ///< connection
  int send_to = -1;            ///< connection
  std::size_t src = kNowhere;  ///< offset in the GPU's memory
  std::size_t dst = kNowhere;
  std::size_t bytes = 0;
  bool add = false;
  std::vector<StepRef> after = {};  ///< steps of the same GPU that have to be finished before
  std::string name = {};            ///< "gpu 3 tb 2 step 7", "chunk 4 over c0g0 → c0g1"
};

/// Its steps run one after another, all lanes at the same time.
struct Lane {
  int gpu = 0;
  std::vector<Step> steps = {};
};

/// First in, first out; all that is sent belongs to one lane and all that is received to one lane.
struct Connection {
  int src = 0;
  int dst = 0;
};

/// Where bytes of an input are.
struct InputPlace {
  int gpu = 0;
  std::size_t offset = 0;  ///< in its input

  friend auto operator<=>(const InputPlace&, const InputPlace&) = default;
};

/// Bytes of one GPU's input, or what several are combined to, that have to stand in an output in the end.
struct Delivery {
  std::vector<InputPlace> from = {};
  int to = 0;
  std::size_t output = 0;  ///< offset in the output of `to`
  std::size_t bytes = 0;
};

/// A GPU has from the beginning what another one has.
struct SameData {
  InputPlace place = {};
  InputPlace as = {};
  std::size_t bytes = 0;
};

struct Program {
  std::string name;
  Collective coll = Collective::custom;
  bool in_place = false;
  int root = 0;                      ///< where the collective has one
  std::size_t size_bytes = 0;        ///< of the collective (FORMATS.md 2), as executed
  std::vector<std::size_t> memory;   ///< bytes, one a GPU
  std::vector<Region> input;         ///< one a GPU
  std::vector<Region> output;        ///< one a GPU
  bool combines = false;             ///< whether some output holds what is combined of several inputs
  Arithmetic arithmetic = {};        ///< where it combines
  std::vector<Delivery> deliveries;  ///< by destination for a named collective
  std::vector<SameData> same_data;
  bool knows_result = true;  ///< false: a custom MSCCL program, which does not say what it is for
  std::vector<Connection> connections;
  std::vector<Lane> lanes;

  int num_gpus() const { return static_cast<int>(memory.size()); }
};

/// What the schedule does, out of place, scaled to `bytes` (rounded up so that equal chunks stay equal and
/// numbers that are combined whole): every transfer from GPU to GPU (switches passed) is a message. The
/// transfers that begin on one link run in its order, each once the chunk has arrived. What a GPU has of a
/// sum changes in the order of the schedule: a send carries what has arrived by its start. Times do not
/// matter otherwise. `proven` need not be valid; what is wrong with it shows in the execution. Throws
/// Error(unavailable) for sizes beyond the caps of `check_size` and for sums that GPUs hold at first.
Program from_schedule(const ProvenSchedule& proven, double bytes, Arithmetic arithmetic = {});

/// The program for a collective of `bytes` (rounded up to whole chunks of whole numbers). Throws
/// Error(bad_data), naming gpu, tb and step, for what cannot be executed: ranges outside the buffers, peers
/// that do not exist, a connection with two owners, dependencies on nothing; Error(unavailable) beyond the
/// caps.
Program from_msccl(const msccl::Program& program, double bytes, bool in_place, Arithmetic arithmetic = {});

/// The plan for a collective of `bytes` (rounded up to chunks of whole numbers and of the plan's alignment):
/// a lane each threadblock, and one each where it acts at another GPU. Throws Error(bad_data) as
/// mscclpp::unfold does, Error(usage) for sizes that the plan is not for, Error(unavailable) beyond the caps.
Program from_plan(const mscclpp::Plan& plan, double bytes, Arithmetic arithmetic = {});

}  // namespace rondo::execution
