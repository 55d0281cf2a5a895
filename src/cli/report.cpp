#include "report.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/core/relay_memory.hpp"
#include "rondo/core/tenants.hpp"
#include "rondo/io/bound_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "scenario_options.hpp"
#include "versions.hpp"

namespace rondo::cli {
namespace {

/// Of this process, in bytes.
double peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);  // Linux counts KiB
}

/// In order, each once.
std::vector<std::string> distinct(const std::vector<std::string>& words) {
  std::vector<std::string> result;
  for (const std::string& word : words) {
    if (std::find(result.begin(), result.end(), word) == result.end()) result.push_back(word);
  }
  return result;
}

Json candidates_to_json(const std::vector<SynthesisResult::Candidate>& candidates) {
  Json json = Json::array();
  for (const auto& candidate : candidates) {
    json.push_back(
        {{"engine", candidate.engine}, {"chunks", candidate.chunks}, {"finish_us", candidate.finish_us}});
  }
  return json;
}

Json trade_to_json(const std::map<int, SynthesisResult::Trade>& by_chunks) {
  Json json = Json::array();
  for (const auto& [chunks, trade] : by_chunks) {
    json.push_back({{"chunks", chunks},
                    {"sends", trade.sends},
                    {"most_sends_on_a_link", trade.most_sends_on_a_link},
                    {"finish_us", trade.finish_us}});
  }
  return json;
}

Json or_null(double value) {
  return std::isnan(value) ? Json(nullptr) : Json(value);
}

/// What the models of every round contributed.
Json rounds_to_json(const std::vector<RoundRecord>& rounds) {
  Json json = Json::array();
  for (const RoundRecord& round : rounds) {
    Json parts = Json::array();
    for (const RoundPart& part : round.parts) {
      parts.push_back({{"part", part.name},
                       {"outcome", part.outcome},
                       {"rank", part.rank},
                       {"seconds", part.seconds},
                       {"columns", part.columns},
                       {"rows", part.rows},
                       {"nodes", part.nodes},
                       {"iterations", part.iterations},
                       {"transfers_changed", part.transfers_changed},
                       {"objective_before", or_null(part.objective_before)},
                       {"objective_after", or_null(part.objective_after)}});
    }
    json.push_back({{"round", round.round},
                    {"begin_us", round.begin_us},
                    {"end_us", round.end_us},
                    {"finish_before_us", or_null(round.finish_before_us)},
                    {"finish_after_us", or_null(round.finish_after_us)},
                    {"parts", std::move(parts)}});
  }
  return json;
}

Json sharing_to_json(const Sharing& sharing, const std::map<int, std::string>& names) {
  Json nodes = Json::array();
  for (const std::vector<NodeId>& set : sharing.weighted_bound_nodes) {
    Json& ids = nodes.emplace_back(Json::array());
    for (const NodeId n : set) ids.push_back(n.value);
  }
  Json each = Json::array();
  for (const TenantOutcome& outcome : sharing.tenants) {
    const int number = outcome.tenant.number;
    each.push_back({{"tenant", number},
                    {"name", names.contains(number) ? names.at(number) : std::to_string(number)},
                    {"priority", outcome.tenant.priority},
                    {"start_us", outcome.tenant.start_us},
                    {"finish_us", outcome.finish_us},
                    {"lower_bound", lower_bound_to_json(outcome.lower_bound)},
                    {"alone_us", outcome.alone_us},
                    {"alone_by", outcome.alone_by},
                    {"slowdown", outcome.slowdown()}});
  }
  return {{"objective", sharing.objective == Objective::finish ? "finish" : "weighted"},
          {"weighted_us", sharing.weighted_us},
          {"weighted_bound_us", sharing.weighted_bound_us},
          {"weighted_bound_nodes", std::move(nodes)},
          {"largest_slowdown", sharing.largest_slowdown()},
          {"each", std::move(each)}};
}

/// What the schedule and the certificates in the report give again.
void check_sharing(const Json& report, const ProvenSchedule& proven) {
  const std::vector<Tenant> tenants = tenants_of(proven.demand);
  if (tenants.size() == 1) return;
  const Json& there = report.at("tenants");
  std::vector<TenantOutcome> outcomes;
  std::map<int, std::string> names;
  for (std::size_t t = 0; t < tenants.size(); ++t) {
    const Json& each = there.at("each").at(t);
    LowerBound bound = lower_bound_from_json(each.at("lower_bound"), fmt::format("tenants.each[{}]", t));
    const double us =
        sound_bound_of(proven.topology, demand_of_tenant(proven.demand, tenants[t]), bound.certificate);
    if (!(std::abs(us - bound.us) <= 1e-9 * us)) {
      throw Error(ExitCode::bad_data,
                  fmt::format("tenants.each[{}].lower_bound.us is {}, but its certificate gives {}", t,
                              bound.us, us));
    }
    names[tenants[t].number] = each.at("name").get<std::string>();
    outcomes.push_back({tenants[t], 0, std::move(bound), each.at("alone_us").get<double>(),
                        each.at("alone_by").get<std::string>()});
  }
  std::vector<std::vector<NodeId>> sets;
  for (const Json& nodes : there.at("weighted_bound_nodes")) {
    std::vector<NodeId>& set = sets.emplace_back();
    for (const Json& node : nodes) set.emplace_back(node.get<std::int32_t>());
  }
  const Objective objective = there.at("objective") == "finish" ? Objective::finish : Objective::weighted;
  const Sharing again =
      sharing_of(proven.topology, proven.demand, proven.schedule, objective, std::move(outcomes), sets);
  if (const Json expected = sharing_to_json(again, names); expected != there) {
    throw Error(ExitCode::bad_data, fmt::format("tenants is not what the schedule gives: {}",
                                                Json::diff(there, expected).front().dump()));
  }
}

}  // namespace

Json make_report(const SynthesisResult& result, const std::string& digest, const Communicator& communicator,
                 const Stopwatch& clock, const std::map<int, std::string>& tenant_names) {
  const double peak = peak_rss_bytes();
  const auto largest = static_cast<std::uint64_t>(communicator.max(peak));
  const auto total = static_cast<std::uint64_t>(communicator.sum(peak));
  const ProvenSchedule& proven = result.proven;
  const Figures figures = figures_of(proven);
  Json report = {{"format", "rondo-report"},
                 {"version", 1},
                 {"topology", proven.topology.name()},
                 {"gpus", proven.topology.num_gpus()},
                 {"collective", to_string(proven.demand.collective())},
                 {"size_bytes", proven.demand.size_bytes()},
                 {"finish_us", figures.finish_us},
                 {"lower_bound_us", figures.lower_bound_us},
                 {"lower_bound_kind", certificate_kind(proven.lower_bound->certificate)},
                 {"gap", figures.gap},
                 {"algorithm_bandwidth_GBps", figures.algorithm_bandwidth_GBps},
                 {"engine", result.engine},
                 {"seed", result.seed},
                 {"chunks", proven.demand.chunks_per_contribution()},
                 {"sends", result.dealt ? result.dealt->num_sends : proven.schedule.sends.size()},
                 {"schedule_digest", digest},
                 {"ranks", communicator.size()},
                 {"wall_s", clock.seconds()},
                 {"wall_parts_s", result.wall_parts_s},
                 {"peak_rss_bytes", {{"max", largest}, {"sum", total}}},
                 {"limits_hit", distinct(result.limits_hit)},
                 {"remarks", distinct(result.remarks)},
                 {"metrics", result.metrics},
                 {"candidates", candidates_to_json(result.candidates)},
                 {"chunk_trade", trade_to_json(result.by_chunks)},
                 {"versions", library_versions()}};
  // Where the schedule is dealt, GPUs only pass on what they want.
  const std::vector<double> peaks = peak_relay_bytes(proven.topology, proven.demand, proven.schedule.sends);
  report["peak_relay_bytes"] = *std::ranges::max_element(peaks);
  write_shape(report, proven.demand.shape());
  if (result.sharing) report["tenants"] = sharing_to_json(*result.sharing, tenant_names);
  if (result.robustness) report["scenarios"] = robustness_to_json(*result.robustness);
  if (!result.rounds.empty()) report["rounds"] = rounds_to_json(result.rounds);
  return report;
}

Figures figures_of_report(const Json& report) {
  try {
    return {.finish_us = report.at("finish_us").get<double>(),
            .algorithm_bandwidth_GBps = report.at("algorithm_bandwidth_GBps").get<double>(),
            .lower_bound_us = report.at("lower_bound_us").get<double>(),
            .gap = report.at("gap").get<double>()};
  } catch (const Json::exception& error) {
    throw Error(ExitCode::bad_data, fmt::format("this is no rondo-report of version 1: {}", error.what()));
  }
}

void check_report(const Json& report, const ProvenSchedule& proven) {
  const auto expect = [&](const char* name, const Json& value) {
    if (!report.contains(name) || report[name] != value) {
      throw Error(ExitCode::bad_data,
                  fmt::format("{} is {}, but the schedule has {}", name,
                              report.contains(name) ? report[name].dump() : "missing", value.dump()));
    }
  };
  const Figures figures = figures_of(proven);
  expect("schedule_digest", schedule_digest(proven.demand, proven.schedule));
  expect("sends", proven.schedule.sends.size());
  expect("finish_us", figures.finish_us);
  expect("lower_bound_us", figures.lower_bound_us);
  expect("gap", figures.gap);
  expect("algorithm_bandwidth_GBps", figures.algorithm_bandwidth_GBps);
  try {
    check_sharing(report, proven);
  } catch (const Json::exception& error) {
    throw Error(ExitCode::bad_data, fmt::format("tenants is not as a report has it: {}", error.what()));
  }
}

}  // namespace rondo::cli
