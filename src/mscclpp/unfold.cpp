#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "rondo/core/error.hpp"
#include "rondo/mscclpp/unfolded.hpp"

namespace rondo::mscclpp {
namespace {

using Kind = Action::Kind;
using Where = Operand::Where;
constexpr std::size_t kMostActions = 50'000'000;
/// The unit of an operation that no pipeline repeats.
constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();

/// Scratch that the executor gives to a plan with reuse_resources.
constexpr std::size_t kReusedScratch = std::size_t{1} << 26;

template <class... Arguments>
[[noreturn]] void refuse(const std::string& where, fmt::format_string<Arguments...> format,
                         Arguments&&... arguments) {
  throw Error(ExitCode::bad_data, where + ": " + fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// What operands an operation has: letters of a source or destination are l (local), r (remote), g (group);
/// a capital where they are packets. The last letter stands for any number more where `open`.
struct Form {
  OpType type;
  std::string_view src;
  std::string_view dst;
  bool open_src = false;
  bool open_dst = false;
};
constexpr Form kForms[] = {
    {OpType::put, "l", "r", true, true},
    {OpType::put_with_signal, "l", "r", true, true},
    {OpType::put_with_signal_flush, "l", "r", true, true},
    {OpType::get, "r", "l", true, true},
    {OpType::copy, "l", "l"},
    {OpType::reduce, "ll", "l", true},
    {OpType::reduce_send, "ll", "lr", true, true},
    {OpType::read_reduce, "lr", "l", true},
    {OpType::read_reduce_send, "lr", "lr", true, true},
    {OpType::put_packets, "l", "R", true, true},
    {OpType::read_put_packets, "L", "R", false, true},
    {OpType::reduce_send_packets, "lL", "lR", true, true},
    {OpType::copy_packets, "l", "L"},
    {OpType::unpack_packets, "L", "l"},
    {OpType::reduce_packets, "lL", "l", true},
    {OpType::reduce_copy_packets, "lL", "lL", true},
    {OpType::reduce_copy_send_packets, "lL", "lLR", true, true},
    {OpType::group_reduce_store, "g", "g"},
    {OpType::group_store, "l", "g"},
    {OpType::group_store_packets, "L", "G"},
};

bool copies_each(OpType type) {
  return type == OpType::put || type == OpType::put_with_signal || type == OpType::put_with_signal_flush ||
         type == OpType::get || type == OpType::put_packets;
}

class Unfolder {
 public:
  Unfolder(const Plan& plan, std::size_t chunk_bytes) : plan_(plan), chunk_(chunk_bytes) {}

  Unfolded run() {
    if (plan_.gpus.empty()) refuse("gpus", "there is none");
    result_.collective = collective_of(plan_);
    result_.chunk_bytes = chunk_;
    for (int g = 0; g < plan_.num_gpus(); ++g) lay_out(g);
    join_channels();
    for (int g = 0; g < plan_.num_gpus(); ++g) {
      result_.semaphores.push_back(gpu(g).semaphores);
      result_.tbs.emplace_back();
      for (std::size_t t = 0; t < gpu(g).tbs.size(); ++t) add_tb(g, static_cast<int>(t));
    }
    return std::move(result_);
  }

 private:
  const Gpu& gpu(int g) const { return plan_.gpus[static_cast<std::size_t>(g)]; }

  int parts(int g, bool input) const {
    const auto gpus = static_cast<std::size_t>(plan_.num_gpus());
    const auto all = static_cast<int>(input ? result_.collective->input_parts(gpus)
                                            : result_.collective->output_parts(gpus));
    const int chunks = input ? gpu(g).input_chunks : gpu(g).output_chunks;
    if (chunks % all != 0) {
      refuse(place(g), "{}_chunks is {}; {} of {} GPUs needs a multiple of {}", input ? "input" : "output",
             chunks, to_string(result_.collective), gpus, all);
    }
    return chunks / all;
  }

  void lay_out(int g) {
    const Gpu& mine = gpu(g);
    if (mine.input_chunks < 0 || mine.output_chunks < 0 || mine.scratch_chunks < 0)
      refuse(place(g), "a buffer of {} chunks",
             std::min({mine.input_chunks, mine.output_chunks, mine.scratch_chunks}));
    int input = mine.input_chunks, output = mine.output_chunks;
    Memory memory;
    if (result_.collective != Collective::custom) {
      const int in = parts(g, true), out = parts(g, false);
      // In place a plan may name one of the two only.
      const int part = std::max(in, out);
      if (part == 0 || (in != part && in != 0) || (out != part && out != 0) ||
          (!plan_.in_place && (in == 0 || out == 0))) {
        refuse(place(g), "input_chunks {} and output_chunks {} do not fit {}: parts of {} and of {} chunks",
               mine.input_chunks, mine.output_chunks, to_string(result_.collective), in, out);
      }
      if (g > 0 && part != part_) refuse(place(g), "parts of {} chunks, but gpu 0 has {}", part, part_);
      part_ = part;
      const auto gpus = static_cast<std::size_t>(plan_.num_gpus());
      input = part * static_cast<int>(result_.collective->input_parts(gpus));
      output = part * static_cast<int>(result_.collective->output_parts(gpus));
    } else if (input == 0 && output == 0) {
      refuse(place(g), "input_chunks and output_chunks are 0, so that chunks have no size");
    }
    memory.input_bytes = static_cast<std::size_t>(input) * chunk_;
    memory.output_bytes = static_cast<std::size_t>(output) * chunk_;
    memory.output = memory.input_bytes;
    if (plan_.in_place) {
      const auto own = static_cast<std::size_t>(g);
      const bool named = result_.collective != Collective::custom;
      memory.output = named && result_.collective->output_in_input() ? own * memory.output_bytes : 0;
      memory.input = named && result_.collective->input_in_output() ? own * memory.input_bytes : 0;
    }
    memory.scratch = std::max(memory.input + memory.input_bytes, memory.output + memory.output_bytes);
    const std::size_t scratch = static_cast<std::size_t>(mine.scratch_chunks) * chunk_;
    memory.packets = memory.scratch + scratch;
    memory.bytes = memory.packets + (plan_.packets ? scratch : 0);
    result_.memory.push_back(memory);
  }

  /// The k-th channel of a type to a peer and the peer's k-th back are one.
  void join_channels() {
    std::map<std::tuple<int, int, int>, std::vector<int>> ends;
    for (int g = 0; g < plan_.num_gpus(); ++g) {
      first_channel_.emplace_back();
      for (std::size_t type = 0; type < 2; ++type) {
        first_channel_.back()[type] = static_cast<int>(result_.channels.size());
        for (const int peer : gpu(g).peers[type]) {
          if (peer < 0 || peer >= plan_.num_gpus() || peer == g)
            refuse(place(g), "a channel is connected to {}; other GPUs are 0 to {}", peer,
                   plan_.num_gpus() - 1);
          ends[{g, peer, static_cast<int>(type)}].push_back(static_cast<int>(result_.channels.size()));
          result_.channels.push_back({.gpu = g, .peer = peer, .type = kChannelTypes[type]});
        }
      }
    }
    for (const auto& [key, mine] : ends) {
      const auto& [g, peer, type] = key;
      const auto theirs = ends.find({peer, g, type});
      if (theirs == ends.end()) continue;
      for (std::size_t k = 0; k < std::min(mine.size(), theirs->second.size()); ++k)
        result_.channels[static_cast<std::size_t>(mine[k])].other_end = theirs->second[k];
    }
  }

  void add_tb(int g, int t) {
    const ThreadBlock& tb = gpu(g).tbs[static_cast<std::size_t>(t)];
    for (std::size_t type = 0; type < 3; ++type) {
      const auto known = type < 2 ? std::ssize(gpu(g).peers[type]) : std::ssize(gpu(g).groups);
      for (const int id : tb.channels[type]) {
        if (id < 0 || id >= known)
          refuse(place(g, t), "{} channel {}, but the GPU has {}", to_string(kChannelTypes[type]), id, known);
      }
    }
    for (const auto& buffers : tb.buffers) {
      for (const int id : buffers) {
        if (id < 0 || id >= std::ssize(gpu(g).remote_buffers))
          refuse(place(g, t), "remote buffer {}, but the GPU has {}", id, gpu(g).remote_buffers.size());
        const RemoteBuffer& buffer = gpu(g).remote_buffers[static_cast<std::size_t>(id)];
        if (buffer.gpu < 0 || buffer.gpu >= plan_.num_gpus() || buffer.gpu == g)
          refuse(place(g), "remote buffer {} is of rank {}; other GPUs are 0 to {}", id, buffer.gpu,
                 plan_.num_gpus() - 1);
      }
    }
    g_ = g;
    t_ = t;
    result_.tbs.back().emplace_back();
    for (o_ = 0; o_ < static_cast<int>(tb.ops.size()); ++o_) {
      const Op& op = tb.ops[static_cast<std::size_t>(o_)];
      if (op.type != OpType::pipeline) {
        add(op, 0, kWhole);
        continue;
      }
      if (op.unit_size < 1 || op.num_chunks < 1)
        refuse(here(), "unit_size is {} and num_chunks {}; both have to be at least 1", op.unit_size,
               op.num_chunks);
      const auto unit = static_cast<std::size_t>(op.unit_size);
      const std::size_t all = static_cast<std::size_t>(op.num_chunks) * chunk_;
      for (std::size_t begin = 0; begin < all; begin += unit) {
        for (const Op& inner : op.ops) {
          if (inner.type == OpType::pipeline) refuse(here(), "a pipeline in a pipeline");
          for (const auto* operands : {&inner.src, &inner.dst}) {
            for (const Operand& operand : *operands) {
              if (operand.size != op.num_chunks)
                refuse(here(), "an operation of {} chunks in a pipeline of {}", operand.size, op.num_chunks);
            }
          }
          add(inner, begin, unit);
        }
      }
    }
  }

  std::string here() const { return place(g_, t_, o_); }
  const ThreadBlock& tb() const { return gpu(g_).tbs[static_cast<std::size_t>(t_)]; }

  void emit(Action action) {
    if (++actions_ > kMostActions) {
      throw Error(
          ExitCode::unavailable,
          fmt::format("the plan has more than {} actions at chunks of {} bytes; choose a smaller --bytes",
                      kMostActions, chunk_));
    }
    action.op = o_;
    result_.tbs.back().back().push_back(std::move(action));
  }

  int channel(const Op& op, std::size_t i) const {
    if (!op.channel_type || *op.channel_type == ChannelType::switch_)
      refuse(here(), "{} has channel_type {}; give memory or port", to_string(op.type),
             op.channel_type ? "switch" : "none");
    const auto& known = tb().channels_of(*op.channel_type);
    if (i >= op.channels.size())
      refuse(here(), "{} has {} channel_ids, {} are needed", to_string(op.type), op.channels.size(), i + 1);
    const int id = op.channels[i];
    if (id < 0 || id >= std::ssize(known))
      refuse(here(), "channel_ids has {}, but the threadblock has {} {} channels", id, known.size(),
             to_string(*op.channel_type));
    return first_channel_[static_cast<std::size_t>(g_)][static_cast<std::size_t>(*op.channel_type)] +
           known[static_cast<std::size_t>(id)];
  }

  void add(const Op& op, std::size_t begin, std::size_t unit) {
    switch (op.type) {
      case OpType::nop:
        return emit({.kind = Kind::sync});
      case OpType::barrier:
        if (op.barrier < 0 || op.num_tbs < 1)
          refuse(here(), "barrier_id is {} and num_threadblocks {}", op.barrier, op.num_tbs);
        return emit({.kind = Kind::barrier, .id = op.barrier, .num_tbs = op.num_tbs});
      case OpType::signal:
      case OpType::relaxed_signal:
      case OpType::wait:
      case OpType::relaxed_wait:
      case OpType::flush:
        return add_on_channels(op);
      case OpType::semaphore_acquire:
      case OpType::semaphore_release:
        if (op.semaphores.empty()) refuse(here(), "{} without semaphore_ids", to_string(op.type));
        for (std::size_t i = 0; i < op.semaphores.size(); ++i) {
          const int id = op.semaphores[i];
          if (id < 0 || id >= std::ssize(gpu(g_).semaphores))
            refuse(here(), "semaphore {}, but the GPU has {}", id, gpu(g_).semaphores.size());
          emit({.kind = op.type == OpType::semaphore_acquire ? Kind::acquire : Kind::release,
                .thread = static_cast<int>(i),
                .id = id});
        }
        return;
      default:
        return add_move(op, begin, unit);
    }
  }

  void add_on_channels(const Op& op) {
    if (op.channels.empty()) refuse(here(), "{} without channel_ids", to_string(op.type));
    const bool signals = op.type == OpType::signal || op.type == OpType::relaxed_signal;
    const bool flushes = op.type == OpType::flush;
    if (flushes && op.channel_type != ChannelType::port)
      refuse(here(), "flush of channel_type memory; only port channels are flushed");
    for (std::size_t i = 0; i < op.channels.size(); ++i) {
      emit({.kind = flushes   ? Action::Kind::flush
                    : signals ? Action::Kind::signal
                              : Action::Kind::wait,
            .thread = static_cast<int>(i),
            .channel = channel(op, i),
            .relaxed = op.type == OpType::relaxed_signal || op.type == OpType::relaxed_wait});
    }
  }

  void add_move(const Op& op, std::size_t begin, std::size_t unit) {
    const auto form = std::ranges::find(kForms, op.type, &Form::type);
    const bool by_port = op.channel_type == ChannelType::port;
    const bool may_port =
        op.type == OpType::put || op.type == OpType::put_packets || op.type == OpType::read_put_packets;
    const bool signals = op.type == OpType::put_with_signal || op.type == OpType::put_with_signal_flush;
    if (signals && !by_port)
      refuse(here(), "{} is for port channels; on memory channels the executor leaves the signal out",
             to_string(op.type));
    if (by_port && !signals && !may_port) refuse(here(), "{} is not for port channels", to_string(op.type));
    check_number(op, "src_buff", op.src.size(), form->src.size(), form->open_src);
    check_number(op, "dst_buff", op.dst.size(), form->dst.size(), form->open_dst);
    // Packets that a port sends lie in its scratch as packets already.
    const bool sends_packets_as_they_are = by_port && op.type == OpType::put_packets;
    std::vector<std::vector<Span>> src, dst;
    for (std::size_t i = 0; i < op.src.size(); ++i) {
      char letter = form->src[std::min(i, form->src.size() - 1)];
      if (sends_packets_as_they_are) letter = 'L';
      src.push_back(spans(op, op.src[i], letter, begin, unit));
    }
    for (std::size_t i = 0; i < op.dst.size(); ++i)
      dst.push_back(spans(op, op.dst[i], form->dst[std::min(i, form->dst.size() - 1)], begin, unit));
    const std::size_t bytes = src.front().front().bytes;
    for (const auto* all : {&src, &dst}) {
      for (const auto& operand : *all) {
        if (operand.front().bytes != bytes)
          refuse(here(), "operands of {} and of {} bytes at chunks of {}", bytes, operand.front().bytes,
                 chunk_);
      }
    }
    if (bytes == 0) return;
    if (copies_each(op.type)) {
      if (src.size() != dst.size()) refuse(here(), "{} sources, but {} destinations", src.size(), dst.size());
      for (std::size_t i = 0; i < src.size(); ++i) add_copy(op, i, src[i].front(), dst[i].front(), by_port);
      return;
    }
    if (by_port) {  // rppkt
      for (std::size_t i = 0; i < dst.size(); ++i) add_copy(op, i, src[0].front(), dst[i].front(), true);
      return;
    }
    Action action{.kind = Action::Kind::move};
    for (const auto& operand : src)
      action.sources.insert(action.sources.end(), operand.begin(), operand.end());
    for (const auto& operand : dst)
      action.targets.insert(action.targets.end(), operand.begin(), operand.end());
    emit(std::move(action));
  }

  void add_copy(const Op& op, std::size_t i, const Span& src, const Span& dst, bool by_port) {
    if (!by_port) return emit({.kind = Action::Kind::move, .sources = {src}, .targets = {dst}});
    const int port = channel(op, i);
    if (result_.channels[static_cast<std::size_t>(port)].peer != dst.gpu)
      refuse(here(), "the channel goes to gpu {}, the destination is at gpu {}",
             result_.channels[static_cast<std::size_t>(port)].peer, dst.gpu);
    const int thread = static_cast<int>(i);
    emit({.kind = Action::Kind::move, .thread = thread, .channel = port, .sources = {src}, .targets = {dst}});
    if (op.type == OpType::put_with_signal || op.type == OpType::put_with_signal_flush)
      emit({.kind = Action::Kind::signal, .thread = thread, .channel = port});
    if (op.type == OpType::put_with_signal_flush)
      emit({.kind = Action::Kind::flush, .thread = thread, .channel = port});
  }

  void check_number(const Op& op, const char* which, std::size_t figure, std::size_t least, bool open) const {
    // A reduction over its own data alone is none, but a store at no other GPU is a plain one.
    if (figure == least || (figure > least && open)) return;
    refuse(here(), "{} has {} in {}; it needs {}{}", to_string(op.type), figure, which,
           open ? "at least " : "", least);
  }

  /// Where an operand is: once, of a group once a GPU.
  std::vector<Span> spans(const Op& op, const Operand& operand, char letter, std::size_t begin,
                          std::size_t unit) const {
    const bool packets = letter >= 'A' && letter <= 'Z';
    const Where expected = letter == 'l' || letter == 'L'   ? Where::local
                           : letter == 'r' || letter == 'R' ? Where::remote
                                                            : Where::group;
    if (operand.where != expected)
      refuse(here(), "{} has an operand with the wrong one of type, buffer_id and switch_channel_id",
             to_string(op.type));
    if (packets && !plan_.packets) refuse(here(), "{} needs the protocol LL", to_string(op.type));
    if (operand.size < 1) refuse(here(), "an operand of {} chunks", operand.size);
    if (op.num_slices < 1 || op.slice < 0 || op.slice >= op.num_slices)
      refuse(here(), "tb_id {} of a threadblock group of {}", op.slice, op.num_slices);
    const auto span = [&](int g, Buffer buffer) { return at(op, g, buffer, operand, packets, begin, unit); };
    if (expected == Where::local) return {span(g_, operand.buffer)};
    if (expected == Where::remote) {
      if (op.channel_type != ChannelType::memory && op.channel_type != ChannelType::port)
        refuse(here(), "{} has channel_type {}; give memory or port", to_string(op.type),
               op.channel_type ? "switch" : "none");
      const auto type = static_cast<std::size_t>(*op.channel_type);
      const auto& known = tb().buffers[type];
      if (operand.id < 0 || operand.id >= std::ssize(known))
        refuse(here(), "buffer_id is {}, but the threadblock has {} remote buffers for {}", operand.id,
               known.size(), to_string(*op.channel_type));
      const RemoteBuffer& buffer =
          gpu(g_).remote_buffers[static_cast<std::size_t>(known[static_cast<std::size_t>(operand.id)])];
      if (!buffer.by[type])
        refuse(here(), "buffer_id {} is not to be reached by {} channels", operand.id,
               to_string(*op.channel_type));
      return {span(buffer.gpu, buffer.buffer)};
    }
    const auto& known = tb().channels_of(ChannelType::switch_);
    if (operand.id < 0 || operand.id >= std::ssize(known))
      refuse(here(), "switch_channel_id is {}, but the threadblock has {} switch channels", operand.id,
             known.size());
    const Group& group =
        gpu(g_).groups[static_cast<std::size_t>(known[static_cast<std::size_t>(operand.id)])];
    std::vector<Span> all;
    for (const int rank : group.ranks) {
      if (rank < 0 || rank >= plan_.num_gpus())
        refuse(place(g_), "a switch channel of rank {}; there are 0 to {}", rank, plan_.num_gpus() - 1);
      if (std::ranges::count(gpu(rank).groups, group) == 0)
        refuse(place(g_), "a switch channel with rank {}, which has no such channel", rank);
      all.push_back(span(rank, group.buffer));
    }
    if (std::ranges::count(group.ranks, g_) != 1)
      refuse(place(g_), "a switch channel without the GPU itself");
    return all;
  }

  Span at(const Op& op, int g, Buffer buffer, const Operand& operand, bool packets, std::size_t begin,
          std::size_t unit) const {
    const Memory& memory = result_.memory[static_cast<std::size_t>(g)];
    if (packets && buffer != Buffer::scratch)
      refuse(here(), "packets in buffer {}; they lie in scratch (s)", msccl::to_string(buffer));
    const std::size_t base = packets                    ? memory.packets
                             : buffer == Buffer::input  ? memory.input
                             : buffer == Buffer::output ? memory.output
                                                        : memory.scratch;
    const std::size_t bytes = buffer == Buffer::input    ? memory.input_bytes
                              : buffer == Buffer::output ? memory.output_bytes
                                                         : memory.packets - memory.scratch;
    const auto chunks = static_cast<std::int64_t>(bytes / chunk_);
    if (operand.index < 0 || std::int64_t{operand.index} + operand.size > chunks)
      refuse(here(), "chunks {} to {} of buffer {} of gpu {}, which has {}", operand.index,
             std::int64_t{operand.index} + operand.size - 1, msccl::to_string(buffer), g, chunks);
    const std::size_t whole = static_cast<std::size_t>(operand.size) * chunk_;
    const auto share = [&](int slice) {
      return whole * static_cast<std::size_t>(slice) / static_cast<std::size_t>(op.num_slices);
    };
    const std::size_t from = share(op.slice), size = share(op.slice + 1) - from;
    const std::size_t skipped = std::min(begin, size);
    std::size_t piece = begin;
    std::size_t first = static_cast<std::size_t>(operand.index) * chunk_;
    if (buffer == Buffer::scratch && plan_.reuse_resources && unit != kWhole) {
      const std::size_t room = kReusedScratch / static_cast<std::size_t>(gpu(g).scratch_chunks);
      if (room < chunk_) {
        first = static_cast<std::size_t>(operand.index) * room;
        piece = begin % room;
      }
    }
    return {.gpu = g,
            .offset = base + first + from + (piece == begin ? skipped : piece),
            .bytes = std::min(size - skipped, unit),
            .packets = packets};
  }

  const Plan& plan_;
  std::size_t chunk_;
  int part_ = 0;
  Unfolded result_;
  std::vector<std::array<int, 2>> first_channel_;
  std::size_t actions_ = 0;
  int g_ = 0, t_ = 0, o_ = 0;
};

}  // namespace

Unfolded unfold(const Plan& plan, std::size_t chunk_bytes) {
  return Unfolder(plan, chunk_bytes).run();
}

namespace {

template <class Visit>
void for_each_op(const Plan& plan, const Visit& visit) {
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& tb : gpu.tbs) {
      for (const Op& op : tb.ops) {
        visit(op);
        for (const Op& inner : op.ops) visit(inner);
      }
    }
  }
}

}  // namespace

std::size_t num_slices(const Plan& plan) {
  constexpr int kMostSlices = 1024;
  std::size_t slices = 1;
  for_each_op(plan, [&](const Op& op) {
    if (op.num_slices < 1 || op.num_slices > kMostSlices || slices > std::size_t{1} << 20) return;
    slices = std::lcm(slices, static_cast<std::size_t>(op.num_slices));
  });
  return slices;
}

std::size_t telling_chunk_bytes(const Plan& plan) {
  std::int64_t unit = 0;
  for_each_op(plan, [&](const Op& op) { unit = std::max(unit, op.unit_size); });
  return num_slices(plan) * (unit > 0 ? 2 * static_cast<std::size_t>(unit) : 1);
}

}  // namespace rondo::mscclpp
