// Runs the transfers of a schedule in SimGrid by their dependencies alone: which data a transfer needs and,
// with `order`, which transfers go before it on its links; no time of the schedule is read. SimGrid decides
// what a flow gets of its links. Arguments: FILE order|free, then SimGrid's own. Prints the finish time in
// microseconds.
//
// FILE: the number of links and each one's GB/s; the number of transfers and for each its bytes, message cost
// in us, rate in GB/s (0: any), and lists with their lengths: links; arrivals that it needs; transfers before
// it, each with a delay in us from that one's end; its arrivals, each with a latency in us.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

struct Before {
  std::size_t transfer = 0;
  double delay_us = 0;
};

struct Arrival {
  std::size_t id = 0;
  double latency_us = 0;
};

struct Transfer {
  double bytes = 0;
  double message_us = 0;
  double rate_GBps = 0;
  std::vector<std::size_t> links;
  std::vector<std::size_t> needs;
  std::vector<Before> before;
  std::vector<Arrival> arrivals;

  int missing = 0;
  double not_before_s = 0;
  sg4::SemaphorePtr ready;
  sg4::Host* from = nullptr;
  sg4::Host* to = nullptr;
};

struct Input {
  std::vector<double> GBps;
  std::vector<Transfer> transfers;
  std::size_t arrivals = 0;
};

template <class T>
T next(std::istream& in) {
  T value{};
  if (!(in >> value)) throw std::runtime_error("the file of transfers ends early");
  return value;
}

Input read(const std::string& path) {
  std::ifstream in(path);
  Input input;
  input.GBps.resize(next<std::size_t>(in));
  for (double& GBps : input.GBps) GBps = next<double>(in);
  input.transfers.resize(next<std::size_t>(in));
  for (Transfer& t : input.transfers) {
    t.bytes = next<double>(in);
    t.message_us = next<double>(in);
    t.rate_GBps = next<double>(in);
    t.links.resize(next<std::size_t>(in));
    for (std::size_t& link : t.links) link = next<std::size_t>(in);
    t.needs.resize(next<std::size_t>(in));
    for (std::size_t& arrival : t.needs) arrival = next<std::size_t>(in);
    t.before.resize(next<std::size_t>(in));
    for (Before& b : t.before) b = {next<std::size_t>(in), next<double>(in)};
    t.arrivals.resize(next<std::size_t>(in));
    for (Arrival& a : t.arrivals) {
      a = {next<std::size_t>(in), next<double>(in)};
      input.arrivals = std::max(input.arrivals, a.id + 1);
    }
    std::ranges::sort(t.arrivals, std::less<>{}, &Arrival::latency_us);
  }
  return input;
}

/// Every set of links that transfers use has two hosts of its own, which these links join: all of them carry
/// a transfer at once. Latencies are ours, for SimGrid has one a route and a copying switch has several.
void make_platform(Input& input) {
  sg4::NetZone* zone = sg4::create_full_zone("fabric");
  std::vector<const sg4::Link*> links;
  for (std::size_t l = 0; l < input.GBps.size(); ++l)
    links.push_back(
        zone->create_link("link" + std::to_string(l), input.GBps[l] * 1e9)->set_latency(0)->seal());
  std::map<std::vector<std::size_t>, std::pair<sg4::Host*, sg4::Host*>> hosts;
  for (Transfer& t : input.transfers) {
    auto& [from, to] = hosts[t.links];
    if (from == nullptr) {
      const std::string number = std::to_string(hosts.size());
      from = zone->create_host("from" + number, 1e9);
      to = zone->create_host("to" + number, 1e9);
      from->seal();
      to->seal();
      std::vector<sg4::LinkInRoute> route;
      for (const std::size_t link : t.links) route.emplace_back(links[link]);
      zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
    }
    t.from = from;
    t.to = to;
  }
  zone->seal();
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  if (argc != 3) throw std::runtime_error("usage: simulate FILE order|free");
  Input input = read(argv[1]);
  const bool ordered = std::string(argv[2]) == "order";
  make_platform(input);
  std::vector<std::vector<std::size_t>> waiting_for_arrival(input.arrivals);
  std::vector<std::vector<Before>> waiting_for_end(input.transfers.size());
  for (std::size_t k = 0; k < input.transfers.size(); ++k) {
    Transfer& t = input.transfers[k];
    t.ready = sg4::Semaphore::create(0);
    for (const std::size_t arrival : t.needs) waiting_for_arrival[arrival].push_back(k);
    t.missing = static_cast<int>(t.needs.size());
    if (!ordered) continue;
    for (const Before& b : t.before) waiting_for_end[b.transfer].push_back({k, b.delay_us});
    t.missing += static_cast<int>(t.before.size());
  }
  double finish_s = 0;
  std::size_t done = 0;
  for (std::size_t k = 0; k < input.transfers.size(); ++k) {
    sg4::Actor::create("transfer" + std::to_string(k), input.transfers[k].from, [&, k] {
      Transfer& t = input.transfers[k];
      for (; t.missing > 0; --t.missing) t.ready->acquire();
      if (t.not_before_s > sg4::Engine::get_clock()) sg4::this_actor::sleep_until(t.not_before_s);
      if (t.message_us > 0) sg4::this_actor::sleep_for(t.message_us * 1e-6);
      const auto message = sg4::Comm::sendto_init();
      message->set_payload_size(static_cast<std::uint64_t>(std::max(1.0, t.bytes)));
      if (t.rate_GBps > 0) message->set_rate(t.rate_GBps * 1e9);
      message->set_source(t.from)->set_destination(t.to);
      message->wait();
      const double end = sg4::Engine::get_clock();
      for (const Before& after : waiting_for_end[k]) {
        Transfer& next = input.transfers[after.transfer];
        next.not_before_s = std::max(next.not_before_s, end + after.delay_us * 1e-6);
        next.ready->release();
      }
      for (const Arrival& arrival : t.arrivals) {
        sg4::this_actor::sleep_until(end + arrival.latency_us * 1e-6);
        for (const std::size_t other : waiting_for_arrival[arrival.id])
          input.transfers[other].ready->release();
      }
      finish_s = std::max(finish_s, sg4::Engine::get_clock());
      ++done;
    });
  }
  engine.run();
  if (done != input.transfers.size()) throw std::runtime_error("transfers wait for each other");
  std::printf("%.9f\n", finish_s * 1e6);
  return 0;
}
