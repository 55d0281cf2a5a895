#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "links.hpp"

namespace rondo::benchmarks::links {
namespace {

constexpr const char* kMessages = "messages";
/// As in Table 8 of TE-CCL, ascending.
constexpr const char* kSizes[] = {"1KB", "4KB",  "16KB", "64KB",  "256KB", "1MB",
                                  "4MB", "16MB", "64MB", "256MB", "1GB"};

/// Per collective and size what Table 8 of TE-CCL gives as the finish time of TACCL's schedule.
std::map<std::pair<std::string, std::string>, double> published_finishes() {
  std::map<std::pair<std::string, std::string>, double> published;
  std::ifstream file(RONDO_SOURCE_DIR "/benchmarks/targets/teccl_table8_ndv2-2.csv");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string collective, epoch, size, skipped, finish;
    std::getline(fields, collective, ',');
    std::getline(fields, epoch, ',');
    std::getline(fields, size, ',');
    for (int i = 0; i < 3; ++i) std::getline(fields, skipped, ',');
    std::getline(fields, finish, ',');
    if (line.starts_with("#") || finish.empty() || collective == "collective") continue;
    published[{collective, size}] = std::stod(finish);
  }
  return published;
}

}  // namespace

/// Only ndv2-2-messages has the figures that Table 8 was made with: like for like. The other two have those
/// of TACCL's own Table 1, whose finish times are in no paper.
void message_costs(TableCases& cases) {
  const auto published = published_finishes();
  for (const std::string fabric : {"ndv2-2-messages", "ndv2-2-taccl", "dgx2-2-taccl"}) {
    for (const std::string collective : {"allgather", "alltoall"}) {
      for (const std::string size : kSizes) {
        nlohmann::ordered_json more{{"fabric", fabric}, {"collective", collective}, {"size", size}};
        const auto known = published.find({collective, size});
        if (fabric == "ndv2-2-messages" && known != published.end()) more["taccl_finish_us"] = known->second;
        for (const std::string join : {"auto", "off"}) {
          more["join"] = join;
          cases.solve_row(
              kMessages, fabric + " " + collective + " " + size + " --join " + join,
              "--topology " + fabric + " --collective " + collective + " --size " + size + " --join " + join,
              more);
        }
      }
    }
  }
}

}  // namespace rondo::benchmarks::links
