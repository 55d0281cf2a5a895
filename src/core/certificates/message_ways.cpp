#include "message_ways.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kinds.hpp"

namespace rondo::certificates {
namespace {

constexpr std::size_t kMostWays = 50'000;

class WaySearch {
 public:
  explicit WaySearch(const Topology& topology) : topology_(topology), passed_(topology.num_nodes(), 0) {}

  std::vector<MessageWay> run() {
    for (std::size_t n = 0; n < topology_.num_nodes(); ++n) {
      if (is_end(NodeId(n))) go_on(NodeId(n), MessageWay{.from = n});
    }
    return std::move(ways_);
  }

 private:
  bool is_end(NodeId n) const { return topology_.is_gpu(n) || topology_.node(n).stores(); }

  void go_on(NodeId at, const MessageWay& so_far) {
    passed_[at.index()] = 1;
    for (const LinkId l : topology_.out_links(at)) {
      const Link& link = topology_.link(l);
      if (passed_[link.dst.index()]) continue;
      MessageWay way = so_far;
      way.steps.push_back({l, way.latency_us});
      way.latency_us += link.latency_us;
      way.message_us = std::max(way.message_us, link.message_us);
      if (!is_end(link.dst)) {
        go_on(link.dst, way);
        continue;
      }
      way.to = link.dst.index();
      ways_.push_back(std::move(way));
      if (ways_.size() > kMostWays)
        refuse_certificate(
            fmt::format("there are more than {} ways of messages; that is too much to check", kMostWays));
    }
    passed_[at.index()] = 0;
  }

  const Topology& topology_;
  std::vector<char> passed_;
  std::vector<MessageWay> ways_ = {};
};

}  // namespace

std::vector<MessageWay> message_ways(const Topology& topology) {
  return WaySearch(topology).run();
}

}  // namespace rondo::certificates
