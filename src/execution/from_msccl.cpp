#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "layout.hpp"
#include "rondo/core/error.hpp"
#include "rondo/execution/program.hpp"

namespace rondo::execution {
namespace {

using msccl::Buffer;
using msccl::StepType;

template <class... Arguments>
[[noreturn]] void refuse(const std::string& where, fmt::format_string<Arguments...> format,
                         Arguments&&... arguments) {
  throw Error(ExitCode::bad_data, where + ": " + fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// The file does not name the root: the GPU that receives least broadcasts or scatters, the one that receives
/// most gathers, the one that sends least reduces.
int root_of(const msccl::Program& program) {
  std::vector<std::int64_t> received, sent;
  for (const msccl::Gpu& gpu : program.gpus) {
    received.push_back(0);
    sent.push_back(0);
    for (const msccl::ThreadBlock& tb : gpu.tbs) {
      for (const msccl::Step& step : tb.steps) {
        if (msccl::receives(step.type)) received.back() += step.count;
        if (msccl::sends(step.type)) sent.back() += step.count;
      }
    }
  }
  if (program.coll->reduces) return static_cast<int>(std::ranges::min_element(sent) - sent.begin());
  const auto root = !program.coll->output.at_root_only ? std::ranges::min_element(received)
                                                       : std::ranges::max_element(received);
  return static_cast<int>(root - received.begin());
}

class FromMsccl {
 public:
  FromMsccl(const msccl::Program& source, double bytes, bool in_place, Arithmetic arithmetic)
      : source_(source) {
    const int whole = source.chunks_per_loop;
    if (whole < 1) refuse("algo", "nchunksperloop is {}; it has to be at least 1", whole);
    if (source.gpus.empty()) refuse("algo", "there is no gpu");
    const auto parts = static_cast<int>(source.coll->num_parts(source.gpus.size()));
    if (whole % parts != 0) {
      refuse("algo", "nchunksperloop is {}; {} needs a multiple of ngpus, {}", whole, to_string(source.coll),
             source.num_gpus());
    }
    result_.arithmetic = arithmetic;
    result_.combines = combines();
    chunk_bytes_ = rounded_up(bytes / whole, result_.combines ? arithmetic.size() : 1);
    result_.name = source.name;
    result_.coll = source.coll;
    result_.in_place = in_place;
    if (source.coll->has_root) result_.root = root_of(source);
    result_.size_bytes = chunk_bytes_ * static_cast<std::size_t>(whole);
    result_.knows_result = source.coll != Collective::custom;
    std::vector<std::size_t> input, output, scratch;
    for (int g = 0; g < source.num_gpus(); ++g) {
      const msccl::Gpu& gpu = source.gpus[static_cast<std::size_t>(g)];
      const auto [in, out] = msccl::buffer_chunks(source, g);
      for (const int chunks : {in, out, gpu.scratch_chunks}) {
        if (chunks < 0) refuse("algo", "a buffer of {} chunks", chunks);
      }
      input.push_back(static_cast<std::size_t>(in) * chunk_bytes_);
      output.push_back(static_cast<std::size_t>(out) * chunk_bytes_);
      scratch.push_back(static_cast<std::size_t>(gpu.scratch_chunks) * chunk_bytes_);
    }
    lay_out(result_, input, output, scratch);
    add_deliveries(result_, result_.size_bytes / static_cast<std::size_t>(parts));
  }

  Program translate() && {
    for (int g = 0; g < source_.num_gpus(); ++g) {
      first_lane_.push_back(static_cast<int>(result_.lanes.size()));
      for (std::size_t t = 0; t < tbs(g).size(); ++t) result_.lanes.push_back({.gpu = g});
    }
    for (int g = 0; g < source_.num_gpus(); ++g) {
      for (std::size_t t = 0; t < tbs(g).size(); ++t) add_tb(g, static_cast<int>(t));
    }
    return std::move(result_);
  }

 private:
  /// A custom program says nothing of what it is for, but its steps do.
  bool combines() const {
    const auto adds = [](const msccl::Step& step) {
      return step.type == StepType::reduce || (msccl::receives(step.type) && msccl::reads_source(step.type));
    };
    return source_.coll->reduces || std::ranges::any_of(source_.gpus, [&](const msccl::Gpu& gpu) {
             return std::ranges::any_of(
                 gpu.tbs, [&](const msccl::ThreadBlock& tb) { return std::ranges::any_of(tb.steps, adds); });
           });
  }

  const std::vector<msccl::ThreadBlock>& tbs(int g) const {
    return source_.gpus[static_cast<std::size_t>(g)].tbs;
  }

  /// The end of a connection at one threadblock, which is its only owner.
  int connect(int src, int dst, int channel, bool sending, int tb, const std::string& where) {
    const int peer = sending ? dst : src;
    if (peer < 0 || peer >= source_.num_gpus()) {
      refuse(where, "the peer is {}, which is no gpu; there are 0 to {}", peer, source_.num_gpus() - 1);
    }
    const auto [it, is_new] =
        connections_.try_emplace({src, dst, channel}, static_cast<int>(result_.connections.size()));
    if (is_new) result_.connections.push_back({src, dst});
    const auto [owner, is_first] = owners_.try_emplace({it->second, sending}, tb);
    if (!is_first && owner->second != tb) {
      refuse(where, "tb {} also {} gpu {} on channel {}; a connection has one owner", owner->second,
             sending ? "sends to" : "receives from", peer, channel);
    }
    return it->second;
  }

  std::size_t place(int g, const msccl::Range& range, int count, const std::string& where) const {
    const auto index = static_cast<std::size_t>(g);
    std::size_t begin = scratch_begin(result_, g);
    std::size_t size = result_.memory[index] - begin;
    if (range.buffer != Buffer::scratch) {
      const Region& region = range.buffer == Buffer::input ? result_.input[index] : result_.output[index];
      begin = region.offset;
      size = region.bytes;
    }
    const auto chunks = static_cast<std::int64_t>(size / chunk_bytes_);
    if (range.offset < 0 || static_cast<std::int64_t>(range.offset) + count > chunks) {
      refuse(where, "chunks {} to {} of buffer {}, which has {}", range.offset,
             static_cast<std::int64_t>(range.offset) + count - 1, to_string(range.buffer), chunks);
    }
    return begin + static_cast<std::size_t>(range.offset) * chunk_bytes_;
  }

  void add_tb(int g, int t) {
    const msccl::ThreadBlock& tb = tbs(g)[static_cast<std::size_t>(t)];
    const int first = first_lane_[static_cast<std::size_t>(g)];
    Lane& lane = result_.lanes[static_cast<std::size_t>(first + t)];
    for (std::size_t s = 0; s < tb.steps.size(); ++s) {
      const msccl::Step& from = tb.steps[s];
      Step step{.name = msccl::place(g, t, static_cast<int>(s))};
      if (from.type != StepType::nop) {
        if (from.count < 1) refuse(step.name, "cnt is {}; it has to be at least 1", from.count);
        step.bytes = static_cast<std::size_t>(from.count) * chunk_bytes_;
        if (msccl::receives(from.type))
          step.receive_from = connect(tb.recv_peer, g, tb.channel, false, t, step.name);
        if (msccl::sends(from.type)) step.send_to = connect(g, tb.send_peer, tb.channel, true, t, step.name);
        if (msccl::reads_source(from.type)) step.src = place(g, from.src, from.count, step.name);
        if (msccl::writes_destination(from.type)) step.dst = place(g, from.dst, from.count, step.name);
        step.add = from.type == StepType::reduce;
      }
      if (from.dependency) {
        const auto [dtb, dstep] = *from.dependency;
        if (dtb < 0 || dtb >= static_cast<int>(tbs(g).size()) || dstep < 0 ||
            dstep >= static_cast<int>(tbs(g)[static_cast<std::size_t>(dtb)].steps.size())) {
          refuse(step.name, "depends on tb {} step {}, which does not exist", dtb, dstep);
        }
        step.after.push_back({first + dtb, dstep});
      }
      lane.steps.push_back(std::move(step));
    }
  }

  const msccl::Program& source_;
  Program result_;
  std::size_t chunk_bytes_ = 0;
  std::vector<int> first_lane_;
  std::map<std::tuple<int, int, int>, int> connections_;
  std::map<std::pair<int, bool>, int> owners_;
};

}  // namespace

Program from_msccl(const msccl::Program& program, double bytes, bool in_place, Arithmetic arithmetic) {
  return FromMsccl(program, bytes, in_place, arithmetic).translate();
}

}  // namespace rondo::execution
