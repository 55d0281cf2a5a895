#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rondo/msccl/program.hpp"

/// An execution plan of MSCCL++ (FORMATS.md 8): what every threadblock of every GPU does, operation by
/// operation, with one-sided copies and signals between GPUs.
namespace rondo::mscclpp {

using msccl::Buffer;

enum class ChannelType : std::uint8_t {
  memory,   ///< a GPU loads from and stores to the memory of another
  port,     ///< a proxy sends: InfiniBand, or copy engines
  switch_,  ///< a switch stores at all GPUs of a group, and adds what they have
};
inline constexpr std::array kChannelTypes = {ChannelType::memory, ChannelType::port, ChannelType::switch_};

/// As the file names them, in FORMATS.md's order.
enum class OpType : std::uint8_t {
  nop,                       ///< the threads of the block wait for one another
  barrier,                   ///< so do several threadblocks of the GPU
  put,                       ///< copies to another GPU
  put_with_signal,           ///< pws: and signals (port)
  put_with_signal_flush,     ///< pwsf: and waits until its source may be written again (port)
  get,                       ///< copies from another GPU (memory)
  copy,                      ///< within the GPU
  signal,                    ///< lets the peer's next wait on the channel pass
  wait,                      ///< for the peer's next signal
  flush,                     ///< until what the port sent has been read
  reduce,                    ///< re: adds local sources
  reduce_send,               ///< res: and stores the sum at other GPUs too (memory)
  read_reduce,               ///< rre: adds what is at other GPUs (memory)
  read_reduce_send,          ///< rres
  put_packets,               ///< ppkt: copies into packets, whose reader waits for each
  read_put_packets,          ///< rppkt: sends packets on
  reduce_send_packets,       ///< respkt: adds packets to local data, sends the sum as packets
  copy_packets,              ///< cpkt: into packets of its own
  unpack_packets,            ///< upkt
  reduce_packets,            ///< repkt
  reduce_copy_packets,       ///< recpkt: keeps the sum as packets too
  reduce_copy_send_packets,  ///< recspkt
  group_reduce_store,        ///< glres: a switch adds what a group has and stores it at all of it
  group_store,               ///< gstore: a switch stores at all GPUs of a group
  group_store_packets,       ///< gstorepkt
  relaxed_signal,            ///< rlxsignal: without making data visible
  relaxed_wait,              ///< rlxwait
  pipeline,                  ///< repeats operations on one piece of their data after another
  semaphore_acquire,         ///< between threadblocks of a GPU
  semaphore_release,
};

/// Chunks that an operation reads or writes.
struct Operand {
  enum class Where : std::uint8_t { local, remote, group };
  Where where = Where::local;
  Buffer buffer = Buffer::input;  ///< local
  int id = -1;  ///< remote: place in the threadblock's buffers of the operation's channel type; group: in its
                ///< switch channels
  int index = 0;  ///< chunks
  int size = 0;   ///< chunks

  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Op {
  OpType type = OpType::nop;
  std::optional<ChannelType> channel_type = std::nullopt;
  std::vector<int> channels = {};  ///< places in the threadblock's channels of that type
  std::vector<Operand> src = {};
  std::vector<Operand> dst = {};
  std::vector<int> semaphores = {};
  int barrier = -1;
  int num_tbs = 0;  ///< that meet at the barrier
  int slice = 0;    ///< this threadblock's part of the data, of `num_slices`
  int num_slices = 1;
  std::int64_t unit_size = 0;  ///< pipeline: bytes of a piece
  int num_chunks = 0;          ///< pipeline: chunks that the pieces make up
  std::vector<Op> ops = {};    ///< pipeline

  friend bool operator==(const Op&, const Op&) = default;
};

struct ThreadBlock {
  std::array<std::vector<int>, 3> channels = {};  ///< per type: the GPU's channels that it uses
  std::array<std::vector<int>, 2> buffers = {};   ///< memory, port: the GPU's remote buffers that it uses
  std::vector<Op> ops = {};

  const std::vector<int>& channels_of(ChannelType type) const {
    return channels[static_cast<std::size_t>(type)];
  }
  std::vector<int>& channels_of(ChannelType type) { return channels[static_cast<std::size_t>(type)]; }
  friend bool operator==(const ThreadBlock&, const ThreadBlock&) = default;
};

/// One buffer of several GPUs, which a switch reaches at once.
struct Group {
  Buffer buffer = Buffer::input;
  int size = 0;
  std::vector<int> ranks = {};

  friend bool operator==(const Group&, const Group&) = default;
};

/// A buffer of another GPU.
struct RemoteBuffer {
  int gpu = -1;
  Buffer buffer = Buffer::input;
  std::array<bool, 2> by = {};  ///< memory, port: how it is reached

  friend bool operator==(const RemoteBuffer&, const RemoteBuffer&) = default;
};

struct Gpu {
  int input_chunks = 0;
  int output_chunks = 0;
  int scratch_chunks = 0;
  /// Memory, port: the peer of each channel. The k-th of a type to a peer is the other end of the peer's k-th
  /// of that type to this GPU.
  std::array<std::vector<int>, 2> peers = {};
  std::vector<Group> groups = {};  ///< switch channels
  std::vector<RemoteBuffer> remote_buffers = {};
  std::vector<int> semaphores = {};  ///< their first values
  std::vector<ThreadBlock> tbs = {};

  friend bool operator==(const Gpu&, const Gpu&) = default;
};

inline constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

struct Plan {
  std::string name = {};
  std::string collective = {};  ///< as the file has it
  bool packets = false;         ///< protocol LL: scratch has room for flags
  bool in_place = false;
  bool reuse_resources = false;        ///< scratch of a fixed size, which pipelines go round in
  bool double_scratch_buffer = false;  ///< every second run has scratch of its own
  int threads = 1024;                  ///< of a threadblock
  int alignment = 16;                  ///< bytes that offsets and sizes are multiples of
  std::uint64_t min_bytes = 0;         ///< of the input, AllGather: of the output
  std::uint64_t max_bytes = kNoLimit;
  std::vector<Gpu> gpus = {};  ///< by id

  int num_gpus() const { return static_cast<int>(gpus.size()); }
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// What the executor takes at most (src/core/include/execution_common.hpp of microsoft/mscclpp, 2026).
struct Caps {
  int ops = 64;            ///< of a threadblock; a pipeline and all that is in it
  int channels = 16;       ///< of a type, of a threadblock
  int buffers = 16;        ///< remote ones of a type, of a threadblock
  int op_channels = 8;     ///< of an operation
  int op_operands = 10;    ///< that an operation reads, and that it writes
  int op_semaphores = 16;  ///< of an operation
  int barriers = 16;       ///< of a GPU
};
inline constexpr Caps kCaps = {};

/// "pws", "memory", "i": as files have them; nothing for other names.
std::string_view to_string(OpType type);
std::string_view to_string(ChannelType type);
std::optional<OpType> find_op_type(std::string_view name);
std::optional<ChannelType> find_channel_type(std::string_view name);
/// All names, for messages.
std::string op_type_names();

/// The collective, custom where it has no such name.
Collective collective_of(const Plan& plan);

/// "gpu 3 tb 2 op 7"; a part that is -1 is left out.
std::string place(int gpu, int tb = -1, int op = -1);

/// The first figure beyond a cap, in words; nothing where there is none.
std::optional<std::string> beyond_caps(const Plan& plan);

}  // namespace rondo::mscclpp
