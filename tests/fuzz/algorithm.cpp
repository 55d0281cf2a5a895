#include "accept_or_refuse.hpp"
#include "rondo/core/generators.hpp"
#include "rondo/core/replay.hpp"
#include "rondo/io/algorithm_files.hpp"
#include "rondo/msccl/xml.hpp"
#include "rondo/xmlcheck/algorithm_of.hpp"

namespace {

/// On a fabric where every GPU has a link to every other; what the replay accepts comes back from its own
/// file.
void time_and_write(const rondo::Algorithm& algorithm) {
  using namespace rondo;
  constexpr std::size_t kMostGpus = 8;
  const std::size_t gpus = algorithm.demand.num_gpus();
  if (gpus > kMostGpus || algorithm.demand.num_chunks() > 256) return;
  const Topology topology = generate_topology("full:gpus=" + std::to_string(gpus));
  Schedule schedule = timed(algorithm, topology, true);
  const ReplayResult replayed = replay(topology, algorithm.demand, schedule.sends);
  if (!replayed.valid()) return;
  schedule.finish_us = replayed.finish_us;
  const ProvenSchedule proven{topology, algorithm.demand, std::move(schedule)};
  fuzz::accept_or_refuse([&] {
    for (const AlgorithmDialect dialect : {AlgorithmDialect::msccl, AlgorithmDialect::taccl}) {
      const Json json = algorithm_to_json(proven, dialect);
      if (algorithm_from_json(json, 1e6).demand.num_chunks() != algorithm.demand.num_chunks()) std::abort();
    }
  });
}

}  // namespace

/// Algorithm JSON of msccl-tools and TACCL, schedules of TE-CCL and MSCCL XML, up to their schedule.
RONDO_FUZZ_TARGET(algorithm)(const std::uint8_t* data, std::size_t size) {
  using namespace rondo;
  fuzz::accept_or_refuse([&] {
    const std::string text = fuzz::to_string(data, size);
    if (!text.empty() && text.front() == '<') {
      time_and_write(xmlcheck::algorithm_of(msccl::parse_xml(text), 1e6));
    } else {
      time_and_write(algorithm_from_any_json(parse_json(text, "input"), 1e6));
    }
  });
  return 0;
}
