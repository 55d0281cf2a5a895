#include <filesystem>

#include "links.hpp"

namespace rondo::benchmarks::links {
namespace {

namespace fs = std::filesystem;
constexpr const char* kDrift = "drift";

struct DriftCase {
  const char* fabric;
  const char* collective;
  const char* size;
};

/// A fabric's schedule, then one for the same fabric with a twentieth of its links at half their bandwidth:
/// anew, and from the first.
void drift_case(TableCases& cases, const DriftCase& c) {
  const std::string name = std::string(c.fabric) + " " + c.collective + " " + c.size;
  if (!cases.wants(kDrift, name)) return;
  const std::string problem =
      std::string("--topology ") + c.fabric + " --collective " + c.collective + " --size " + c.size;
  const fs::path kept = fs::temp_directory_path() / "rondo-benchmark-kept.h5";
  const std::string degraded = problem + " --degrade 0.05:0.5";
  const auto whole = cases.solve(kDrift, name + " (whole)", words(problem), kept);
  if (!whole) return;
  const auto anew = cases.solve(kDrift, name + " (anew)", words(degraded));
  const auto from = cases.solve(kDrift, name + " (--from)", words(degraded + " --from " + kept.string()));
  fs::remove(kept);
  if (!anew || !from) return;
  cases.add(kDrift, name,
            {{"fabric", c.fabric},
             {"collective", c.collective},
             {"size", c.size},
             {"kept", {{"wall_s", whole->wall_s}, {"cpu_s", whole->cpu_s}, {"report", whole->report}}},
             {"anew", {{"wall_s", anew->wall_s}, {"cpu_s", anew->cpu_s}, {"report", anew->report}}},
             {"wall_s", from->wall_s},
             {"cpu_s", from->cpu_s},
             {"report", from->report}});
}

}  // namespace

void drift(TableCases& cases) {
  for (const DriftCase& c : {DriftCase{"ndv2-2", "allgather", "1GB"},
                             {"ndv2-2", "allgather", "1MB"},
                             {"ndv2-4", "allgather", "1GB"},
                             {"ndv2-4", "allgather", "1MB"},
                             {"amd-2", "allgather", "1GB"},
                             {"torus:dims=4x4", "allgather", "1GB"},
                             {"torus:dims=8x8", "allgather", "1GB"},
                             {"torus:dims=4x4", "alltoall", "1GB"},
                             {"torus:dims=8x8", "alltoall", "1GB"},
                             {"rails:boxes=4", "alltoall", "1GB"},
                             {"rails:boxes=4", "allgather", "1GB"}})
    drift_case(cases, c);
}

}  // namespace rondo::benchmarks::links
