#include "operand_spans.hpp"

#include <algorithm>

#include "refuse.hpp"

namespace rondo::mscclpp {
namespace {

using Where = Operand::Where;
/// Scratch that the executor gives to a plan with reuse_resources.
constexpr std::size_t kReusedScratch = std::size_t{1} << 26;

class OperandReader {
 public:
  OperandReader(const Plan& plan, const Unfolded& unfolded, const OpPlace& where, const Op& op,
                const Operand& operand)
      : plan_(plan), unfolded_(unfolded), where_(where), op_(op), operand_(operand) {}

  std::vector<Span> spans(char letter, const Unit& unit) const {
    const bool packets = letter >= 'A' && letter <= 'Z';
    const Where expected = letter == 'l' || letter == 'L'   ? Where::local
                           : letter == 'r' || letter == 'R' ? Where::remote
                                                            : Where::group;
    if (operand_.where != expected)
      refuse(here(), "{} has an operand with the wrong one of type, buffer_id and switch_channel_id",
             to_string(op_.type));
    if (packets && !plan_.packets) refuse(here(), "{} needs the protocol LL", to_string(op_.type));
    if (operand_.size < 1) refuse(here(), "an operand of {} chunks", operand_.size);
    if (op_.num_slices < 1 || op_.slice < 0 || op_.slice >= op_.num_slices)
      refuse(here(), "tb_id {} of a threadblock group of {}", op_.slice, op_.num_slices);
    const auto span = [&](int g, Buffer buffer) { return at(g, buffer, packets, unit); };
    if (expected == Where::local) return {span(where_.gpu, operand_.buffer)};
    if (expected == Where::remote) {
      const RemoteBuffer& buffer = remote_buffer();
      return {span(buffer.gpu, buffer.buffer)};
    }
    const Group& ranks = group();
    std::vector<Span> all;
    for (const int rank : ranks.ranks) all.push_back(span(rank, ranks.buffer));
    return all;
  }

 private:
  std::string here() const { return place(where_.gpu, where_.tb, where_.op); }
  const Gpu& gpu(int g) const { return plan_.gpus[static_cast<std::size_t>(g)]; }
  const ThreadBlock& tb() const { return gpu(where_.gpu).tbs[static_cast<std::size_t>(where_.tb)]; }

  const RemoteBuffer& remote_buffer() const {
    if (op_.channel_type != ChannelType::memory && op_.channel_type != ChannelType::port)
      refuse(here(), "{} has channel_type {}; give memory or port", to_string(op_.type),
             op_.channel_type ? "switch" : "none");
    const auto type = static_cast<std::size_t>(*op_.channel_type);
    const auto& known = tb().buffers[type];
    if (operand_.id < 0 || operand_.id >= std::ssize(known))
      refuse(here(), "buffer_id is {}, but the threadblock has {} remote buffers for {}", operand_.id,
             known.size(), to_string(*op_.channel_type));
    const RemoteBuffer& buffer =
        gpu(where_.gpu)
            .remote_buffers[static_cast<std::size_t>(known[static_cast<std::size_t>(operand_.id)])];
    if (!buffer.by[type])
      refuse(here(), "buffer_id {} is not to be reached by {} channels", operand_.id,
             to_string(*op_.channel_type));
    return buffer;
  }

  const Group& group() const {
    const auto& known = tb().channels_of(ChannelType::switch_);
    if (operand_.id < 0 || operand_.id >= std::ssize(known))
      refuse(here(), "switch_channel_id is {}, but the threadblock has {} switch channels", operand_.id,
             known.size());
    const Group& found =
        gpu(where_.gpu).groups[static_cast<std::size_t>(known[static_cast<std::size_t>(operand_.id)])];
    for (const int rank : found.ranks) {
      if (rank < 0 || rank >= plan_.num_gpus())
        refuse(place(where_.gpu), "a switch channel of rank {}; there are 0 to {}", rank,
               plan_.num_gpus() - 1);
      if (std::ranges::count(gpu(rank).groups, found) == 0)
        refuse(place(where_.gpu), "a switch channel with rank {}, which has no such channel", rank);
    }
    if (std::ranges::count(found.ranks, where_.gpu) != 1)
      refuse(place(where_.gpu), "a switch channel without the GPU itself");
    return found;
  }

  Span at(int g, Buffer buffer, bool packets, const Unit& unit) const {
    const Memory& memory = unfolded_.memory[static_cast<std::size_t>(g)];
    if (packets && buffer != Buffer::scratch)
      refuse(here(), "packets in buffer {}; they lie in scratch (s)", msccl::to_string(buffer));
    const std::size_t base = packets                    ? memory.packets
                             : buffer == Buffer::input  ? memory.input
                             : buffer == Buffer::output ? memory.output
                                                        : memory.scratch;
    const std::size_t bytes = buffer == Buffer::input    ? memory.input_bytes
                              : buffer == Buffer::output ? memory.output_bytes
                                                         : memory.packets - memory.scratch;
    const auto chunks = static_cast<std::int64_t>(bytes / unfolded_.chunk_bytes);
    if (operand_.index < 0 || std::int64_t{operand_.index} + operand_.size > chunks)
      refuse(here(), "chunks {} to {} of buffer {} of gpu {}, which has {}", operand_.index,
             std::int64_t{operand_.index} + operand_.size - 1, msccl::to_string(buffer), g, chunks);
    const std::size_t whole = static_cast<std::size_t>(operand_.size) * unfolded_.chunk_bytes;
    const auto share = [&](int slice) {
      return whole * static_cast<std::size_t>(slice) / static_cast<std::size_t>(op_.num_slices);
    };
    const std::size_t from = share(op_.slice), size = share(op_.slice + 1) - from;
    const std::size_t skipped = std::min(unit.begin, size);
    std::size_t piece = unit.begin;
    std::size_t first = static_cast<std::size_t>(operand_.index) * unfolded_.chunk_bytes;
    if (buffer == Buffer::scratch && plan_.reuse_resources && unit.bytes != Unit::kAll) {
      const std::size_t room = kReusedScratch / static_cast<std::size_t>(gpu(g).scratch_chunks);
      if (room < unfolded_.chunk_bytes) {
        first = static_cast<std::size_t>(operand_.index) * room;
        piece = unit.begin % room;
      }
    }
    return {.gpu = g,
            .offset = base + first + from + (piece == unit.begin ? skipped : piece),
            .bytes = std::min(size - skipped, unit.bytes),
            .packets = packets};
  }

  const Plan& plan_;
  const Unfolded& unfolded_;
  OpPlace where_;
  const Op& op_;
  const Operand& operand_;
};

}  // namespace

std::vector<Span> operand_spans(const Plan& plan, const Unfolded& unfolded, const OpPlace& where,
                                const Op& op, const Operand& operand, char letter, const Unit& unit) {
  return OperandReader(plan, unfolded, where, op, operand).spans(letter, unit);
}

}  // namespace rondo::mscclpp
