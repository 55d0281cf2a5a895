#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/core/collective_table.hpp"

/// A program of the MSCCL executors (FORMATS.md 5): what every threadblock of every GPU does, step by step.
namespace rondo::msccl {

/// Buffers of a GPU, counted in chunks of the program: what the caller gives, what it gets, room in between.
enum class Buffer : std::uint8_t { input, output, scratch };

enum class StepType : std::uint8_t {
  send,                      ///< s: sends src
  receive,                   ///< r: receives into dst
  receive_copy_send,         ///< rcs: receives into dst and sends it on
  receive_reduce_copy,       ///< rrc: dst = src + received
  receive_reduce_send,       ///< rrs: sends src + received
  receive_reduce_copy_send,  ///< rrcs: dst = src + received, and sends it on
  copy,                      ///< cpy: dst = src
  reduce,                    ///< re: dst = dst + src
  nop,                       ///< nop: waits only
};

enum class Protocol : std::uint8_t { simple, ll, ll128 };

/// `count` chunks from `offset` on.
struct Range {
  Buffer buffer = Buffer::input;
  int offset = -1;

  friend bool operator==(const Range&, const Range&) = default;
};

/// A step waits until threadblock `tb` of the same GPU has finished its step `step`.
struct Dependency {
  int tb = -1;
  int step = -1;

  friend bool operator==(const Dependency&, const Dependency&) = default;
};

struct Step {
  StepType type = StepType::nop;
  Range src = {};  ///< read where reads_source(type); elsewhere for the reader of the file only
  Range dst = {};  ///< written where writes_destination(type)
  int count = 0;   ///< chunks moved
  std::optional<Dependency> dependency = std::nullopt;
  bool has_dependents = false;  ///< another threadblock waits for this step

  friend bool operator==(const Step&, const Step&) = default;
};

/// Steps run one after another; threadblocks run at the same time.
struct ThreadBlock {
  int send_peer = -1;  ///< GPU, or -1
  int recv_peer = -1;
  int channel = 0;  ///< (sender, receiver, channel) is a connection: first in, first out
  std::vector<Step> steps = {};

  friend bool operator==(const ThreadBlock&, const ThreadBlock&) = default;
};

struct Gpu {
  int input_chunks = 0;
  int output_chunks = 0;
  int scratch_chunks = 0;
  std::vector<ThreadBlock> tbs = {};  ///< by id

  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct Program {
  std::string name = {};
  Protocol protocol = Protocol::simple;
  Collective coll = Collective::custom;
  std::string coll_spelling = {};  ///< as the file has it: executors differ
  int num_channels = 0;
  int chunks_per_loop = 0;
  bool in_place = false;      ///< may run where input and output are the same memory
  bool out_of_place = false;  ///< may run where they are not
  std::int64_t min_bytes = 0;
  std::int64_t max_bytes = 0;  ///< 0: no limit
  std::string redop = {};
  std::optional<int> num_threads = std::nullopt;  ///< of a threadblock
  std::vector<Gpu> gpus = {};                     ///< by id

  int num_gpus() const { return static_cast<int>(gpus.size()); }
  friend bool operator==(const Program&, const Program&) = default;
};

/// Chunks of a GPU's input and output: what the collective gives them (NCCL's conventions), a custom program
/// says itself.
struct BufferChunks {
  int input = 0;
  int output = 0;
};
BufferChunks buffer_chunks(const Program& program, int gpu);

bool reads_source(StepType type);
bool writes_destination(StepType type);
bool sends(StepType type);
bool receives(StepType type);

/// "i", "rcs", "LL128": the spelling of microsoft/msccl.
std::string_view to_string(Buffer buffer);
std::string_view to_string(StepType type);
std::string_view to_string(Protocol protocol);
/// Throw Error(usage) with the known names.
Protocol parse_protocol(std::string_view name);

/// "gpu 3 tb 2 step 7": how messages name a step; a part that is -1 is left out.
std::string place(int gpu, int tb = -1, int step = -1);

}  // namespace rondo::msccl
