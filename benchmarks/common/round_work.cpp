#include "round_work.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace rondo::benchmarks {
namespace {

double largest_load(const std::vector<const Stage*>& stages) {
  std::map<int, double> load;
  double largest = 0;
  for (const Stage* stage : stages) {
    for (const SolvedPart& part : *stage) largest = std::max(largest, load[part.rank] += part.seconds);
  }
  return largest;
}

}  // namespace

double RoundWork::part_seconds() const {
  double sum = 0;
  for (const auto& stages : rounds) {
    for (const Stage& stage : stages) {
      for (const SolvedPart& part : stage) sum += part.seconds;
    }
  }
  return sum;
}

double RoundWork::busiest_seconds() const {
  double sum = 0;
  for (const auto& stages : rounds) {
    std::vector<const Stage*> all;
    for (const Stage& stage : stages) all.push_back(&stage);
    sum += largest_load(all);
  }
  return sum;
}

double RoundWork::staged_seconds() const {
  double sum = 0;
  for (const auto& stages : rounds) {
    for (const Stage& stage : stages) sum += largest_load({&stage});
  }
  return sum;
}

RoundWork round_work(const nlohmann::ordered_json& report) {
  RoundWork work;
  if (!report.contains("rounds")) return work;
  for (const auto& round : report["rounds"]) {
    std::vector<Stage> stages(1);
    for (const auto& part : round["parts"]) {
      work.transfers_changed += part["transfers_changed"].get<std::int64_t>();
      const auto outcome = part["outcome"].get<std::string>();
      if (outcome.starts_with("kept")) {
        ++work.kept;
      } else if (outcome.starts_with("copied")) {
        ++work.copied;
      } else {
        ++work.solved;
        stages.back().push_back({part["rank"].get<int>(), part["seconds"].get<double>()});
      }
      // The report has no stages: only NCFlow has a second, of the clusters, after this part.
      if (part["part"] == "between clusters") stages.emplace_back();
    }
    work.rounds.push_back(std::move(stages));
  }
  return work;
}

}  // namespace rondo::benchmarks
