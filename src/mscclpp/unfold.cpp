#include <algorithm>
#include <map>
#include <tuple>

#include "memory_layout.hpp"
#include "operand_spans.hpp"
#include "refuse.hpp"
#include "rondo/mscclpp/unfolded.hpp"

namespace rondo::mscclpp {
namespace {

using Kind = Action::Kind;
constexpr std::size_t kMostActions = 50'000'000;
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
    result_.memory = memory_layout(plan_, result_.collective, chunk_);
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
        add(op, {});
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
          add(inner, {.begin = begin, .bytes = unit});
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

  void add(const Op& op, const Unit& unit) {
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
        return add_move(op, unit);
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

  void add_move(const Op& op, const Unit& unit) {
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
      src.push_back(spans(op, op.src[i], letter, unit));
    }
    for (std::size_t i = 0; i < op.dst.size(); ++i)
      dst.push_back(spans(op, op.dst[i], form->dst[std::min(i, form->dst.size() - 1)], unit));
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

  std::vector<Span> spans(const Op& op, const Operand& operand, char letter, const Unit& unit) const {
    return operand_spans(plan_, result_, {.gpu = g_, .tb = t_, .op = o_}, op, operand, letter, unit);
  }

  const Plan& plan_;
  std::size_t chunk_;
  Unfolded result_;
  std::vector<std::array<int, 2>> first_channel_;
  std::size_t actions_ = 0;
  int g_ = 0, t_ = 0, o_ = 0;
};

}  // namespace

Unfolded unfold(const Plan& plan, std::size_t chunk_bytes) {
  return Unfolder(plan, chunk_bytes).run();
}

}  // namespace rondo::mscclpp
