#include "rondo/pipeline/dealt_schedule.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "replayed.hpp"
#include "rondo/core/index.hpp"
#include "rondo/core/replay_parts.hpp"
#include "rondo/parallel/all_to_all.hpp"
#include "rondo/parallel/messages.hpp"

namespace rondo {

auto members_of(SameAs<Violation> auto& v) {
  return std::tie(v.time_us, v.rank, v.link, v.chunk, v.sentence);
}

namespace {

/// Sends in one message of one rank to another.
constexpr std::size_t kBlock = std::size_t{1} << 12;
/// Uses of links that a rank looks at together; they are in memory several times, as messages and sorted.
constexpr double kUsesAtOnce = 1 << 14;

template <class T>
void append_plain(const Bytes& bytes, std::vector<T>& values) {
  const std::vector<T> more = from_message<std::vector<T>>(bytes);
  values.insert(values.end(), more.begin(), more.end());
}

/// Collective. Links are looked at group by group, on as many ranks at a time: each rank sends what its
/// chunks use of the links to whoever looks at them.
std::optional<Violation> links_replayed(const Communicator& communicator, const Topology& topology,
                                        const Demand& demand, const ReplayOfChunks& chunks) {
  const std::size_t ranks = index(communicator.size());
  const auto groups = link_groups(topology, communicator.sum(chunks.sends_per_link()), kUsesAtOnce);
  std::optional<Violation> first;
  for (std::size_t begin = 0; begin < groups.size(); begin += ranks) {
    std::vector<Bytes> to_each(ranks);
    for (std::size_t r = 0; r < ranks && begin + r < groups.size(); ++r)
      to_each[r] = to_message(chunks.uses_of(groups[begin + r]));
    std::vector<LinkUse> uses;
    for (const Bytes& bytes : all_to_all(communicator, std::exchange(to_each, {})))
      if (!bytes.empty()) append_plain(bytes, uses);
    const std::size_t own = begin + index(communicator.rank());
    if (own < groups.size()) keep_first(first, replay_links(topology, demand, groups[own], std::move(uses)));
  }
  return first;
}

/// What one rank has sent to the root and the root has not passed on.
struct Stream {
  std::vector<Send> sends = {};
  std::size_t next = 0;
  bool is_over = false;

  bool is_empty() const { return next == sends.size(); }
  const Send& head() const { return sends[next]; }
};

/// On the root: all ranks' sends as one list. Before each exchange the root says who is to send more.
class Merger {
 public:
  Merger(const Communicator& communicator, std::span<const Send> own)
      : communicator_(communicator), own_(own), streams_(index(communicator.size())) {
    streams_[0].is_over = true;
  }

  std::span<const Send> next() {
    if (streams_.size() == 1) return std::exchange(own_, {});
    if (std::ranges::any_of(streams_, [](const Stream& s) { return s.is_empty() && !s.is_over; })) fetch();
    merged_.clear();
    std::vector<std::size_t> heads;  // a heap, the next one first
    for (std::size_t r = 0; r < streams_.size(); ++r)
      if (head_of(r) != nullptr) heads.push_back(r);
    const auto is_later = [&](std::size_t a, std::size_t b) {
      return comes_before(*head_of(b), *head_of(a));
    };
    std::ranges::make_heap(heads, is_later);
    while (!heads.empty() && merged_.size() < kBlock) {
      std::ranges::pop_heap(heads, is_later);
      const std::size_t r = heads.back();
      merged_.push_back(*head_of(r));
      advance(r);
      if (head_of(r) != nullptr) {
        std::ranges::push_heap(heads, is_later);
      } else {
        if (!streams_[r].is_over) break;
        heads.pop_back();
      }
    }
    return merged_;
  }

 private:
  const Send* head_of(std::size_t r) const {
    if (r == 0) return own_.empty() ? nullptr : &own_.front();
    return streams_[r].is_empty() ? nullptr : &streams_[r].head();
  }
  void advance(std::size_t r) {
    if (r == 0) own_ = own_.subspan(1);
    if (r > 0) ++streams_[r].next;
  }

  void fetch() {
    std::vector<char> asked;
    for (const Stream& stream : streams_) {
      const std::size_t left = stream.sends.size() - stream.next;
      asked.push_back(!stream.is_over && left < kBlock / 2 ? 1 : 0);
    }
    communicator_.broadcast(to_message(asked), 0);
    const std::vector<Bytes> arrived = all_to_all(communicator_, std::vector<Bytes>(streams_.size()));
    for (std::size_t r = 1; r < streams_.size(); ++r) {
      if (asked[r] == 0) continue;
      Stream& stream = streams_[r];
      stream.sends.erase(stream.sends.begin(),
                         stream.sends.begin() + static_cast<std::ptrdiff_t>(stream.next));
      stream.next = 0;
      const std::size_t before = stream.sends.size();
      append_plain(arrived[r], stream.sends);
      stream.is_over = stream.sends.size() - before < kBlock;
    }
  }

  const Communicator& communicator_;
  std::span<const Send> own_;
  std::vector<Stream> streams_;  ///< per rank; the root's is own_
  std::vector<Send> merged_;
};

/// On the other ranks: sends blocks as long as the root asks for them.
void serve(const Communicator& communicator, std::span<const Send> own) {
  for (;;) {
    const auto asked = from_message<std::vector<char>>(communicator.broadcast({}, 0));
    if (asked.empty()) return;
    std::vector<Bytes> to_each(index(communicator.size()));
    if (asked[index(communicator.rank())] != 0) {
      const std::span<const Send> block = own.first(std::min(own.size(), kBlock));
      MessageWriter message;
      message.put_all(block);
      to_each[0] = message.take();
      own = own.subspan(block.size());
    }
    all_to_all(communicator, to_each);
  }
}

}  // namespace

double dealt_finish_us(const Communicator& communicator, const Topology& topology, const Demand& demand,
                       std::span<const Send> sends, const std::string& whose) {
  const ChunkRange own = chunks_of_rank(demand.num_chunks(), communicator.rank(), communicator.size());
  const ReplayOfChunks chunks(topology, demand, own, sends);
  std::optional<Violation> first = chunks.violation();
  keep_first(first, links_replayed(communicator, topology, demand, chunks));
  std::optional<Violation> of_all;
  for (const Bytes& bytes : communicator.all_gather(to_message(first)))
    keep_first(of_all, from_message<std::optional<Violation>>(bytes));
  if (of_all) throw_refused(whose, of_all->sentence);
  return communicator.max(chunks.finish_us());
}

std::vector<Send> dealt(const Communicator& communicator, std::vector<Send> sends, int rank,
                        std::size_t num_chunks) {
  if (communicator.size() == 1) return sends;
  const std::size_t ranks = index(communicator.size());
  const auto total = static_cast<std::size_t>(
      communicator.max(communicator.rank() == rank ? static_cast<double>(sends.size()) : 0));
  std::vector<Send> own;
  own.reserve(total / ranks);
  for (std::size_t begin = 0; begin < total; begin += kBlock) {
    std::vector<MessageWriter> messages(ranks);
    for (std::size_t s = begin; s < std::min(begin + kBlock, sends.size()); ++s)
      messages[index(rank_of_chunk(sends[s].chunk, num_chunks, communicator.size()))].put(sends[s]);
    std::vector<Bytes> to_each;
    for (MessageWriter& message : messages) to_each.push_back(message.take());
    const Bytes arrived = std::move(all_to_all(communicator, to_each)[index(rank)]);
    MessageReader reader(arrived);
    for (std::size_t n = arrived.size() / sizeof(Send); n > 0; --n) own.push_back(reader.get<Send>());
  }
  return own;
}

Bytes on_root_with_sends(const Communicator& communicator, std::span<const Send> sends,
                         const std::function<Bytes(const NextSends&)>& work) {
  if (!communicator.is_root()) serve(communicator, sends);
  return on_root(communicator, [&] {
    struct End {
      const Communicator& communicator;
      ~End() { communicator.broadcast(to_message(std::vector<char>()), 0); }
    };
    const End end{communicator};
    Merger merger(communicator, sends);
    return work([&] { return merger.next(); });
  });
}

}  // namespace rondo
