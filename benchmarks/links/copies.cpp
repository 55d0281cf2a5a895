#include <filesystem>
#include <fstream>

#include "links.hpp"

namespace rondo::benchmarks::links {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
constexpr const char* kCopies = "copies";

struct CopiesCase {
  const char* fabric;
  const char* size;
};

/// The fabric as a file, none of whose switches may copy.
fs::path without_copies(const std::string& rondo, const std::string& fabric) {
  const fs::path path = fs::temp_directory_path() / "rondo-benchmark-copies.json";
  run_command({rondo, "topology", "generate", "--topology", fabric, "--output", path.string()}, nullptr);
  std::ifstream file(path);
  Json topology = Json::parse(file);
  for (Json& node : topology["nodes"])
    if (node["kind"] == "switch") node["multicast"] = false;
  std::ofstream(path) << topology.dump();
  return path;
}

}  // namespace

void copies(TableCases& cases) {
  for (const CopiesCase& c : {CopiesCase{"amd-2", "1MB"},
                              {"amd-2", "1GB"},
                              {"rails:boxes=4", "1MB"},
                              {"star:chassis=8,gpus=1", "1MB"}}) {
    const std::string name = std::string(c.fabric) + " allgather " + c.size;
    if (!cases.wants(kCopies, name)) continue;
    const std::string problem = std::string(" --collective allgather --size ") + c.size;
    const fs::path fabric = without_copies(cases.options().rondo.string(), c.fabric);
    const auto before =
        cases.solve(kCopies, name + " (no copies)", words("--topology " + fabric.string() + problem));
    fs::remove(fabric);
    const auto after = cases.solve(kCopies, name, words(std::string("--topology ") + c.fabric + problem));
    if (!before || !after) continue;
    cases.add(kCopies, name,
              {{"fabric", c.fabric},
               {"size", c.size},
               {"without", {{"wall_s", before->wall_s}, {"report", before->report}}},
               {"wall_s", after->wall_s},
               {"report", after->report}});
  }
}

}  // namespace rondo::benchmarks::links
