#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "command.hpp"
#include "fabrics.hpp"
#include "figures.hpp"
#include "ready_options.hpp"
#include "rondo/core/early_delivery.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/core/version.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/schedule_files.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/pipeline/bound.hpp"
#include "rondo/pipeline/kept_schedule.hpp"

namespace rondo::cli {
namespace {

/// --ready as solve has it; what a custom demand says of ready times stays.
Option ready() {
  Option option = ready_option();
  option.why_ignored = nullptr;
  return option;
}

std::vector<OptionGroup> replay_option_groups() {
  OptionGroup fabric = fabric_options();
  fabric.options.front().help =
      "the fabric to replay on (default: the schedule's own): " + fabric.options.front().help;
  return {{"Input", {{"path", "PATH", "", "a schedule (FILE.h5, FILE.json) or the folder of a run"}}},
          std::move(fabric),
          {"Figures",
           {{"size", "SIZE", "", "another size of the collective; every chunk grows alike"},
            ready(),
            {"message-us", "US", "", "what a message costs on every link, in place of the fabric's figures"},
            {"early-epoch", "US", "",
             "also say both schedules' reward of early delivery, in epochs so long: the sum over deliveries "
             "of 1 / "
             "(k + 1) over the epochs k, up to the later finish, by whose end the data is there"}}},
          {"Output", {{"output", "FILE", "", "the schedule as timed anew, as FILE.json or HDF5"}}}};
}

Topology with_message_costs(const Topology& topology, double message_us) {
  TopologyData data = topology.data();
  for (Link& link : data.links) link.message_us = message_us;
  return Topology(std::move(data));
}

std::shared_ptr<const Topology> topology_of(const Settings& settings, const Topology& own) {
  const bool is_named = settings.has("topology") || settings.has("profile");
  Topology topology =
      sketched_topology(changed_topology(is_named ? named_topology(settings) : own, settings), settings);
  if (settings.has("message-us")) topology = with_message_costs(topology, settings.fraction("message-us"));
  return std::make_shared<const Topology>(std::move(topology));
}

/// The demand of the schedule, one contribution a chunk; and for the bound the same as it was asked, since
/// bounds hold for any chunks.
Demand asked_demand(const Demand& demand) {
  if (demand.collective() == Collective::custom) return demand;
  return make_demand(demand.collective(), demand.size_bytes(), demand.num_gpus(), 1, root_of(demand),
                     demand.shape());
}

std::string early_deliveries(const Settings& settings, const ProvenSchedule& before,
                             const ProvenSchedule& after) {
  if (!settings.has("early-epoch")) return "";
  if (before.demand.has_several_sources())
    throw Error(ExitCode::unavailable, "early delivery is of data, not of sums; leave --early-epoch out");
  constexpr double kMostEpochs = 1e7;
  const double epoch_us = settings.fraction("early-epoch");
  const double last_us = std::max(before.schedule.finish_us, after.schedule.finish_us);
  if (!(epoch_us > 0 && last_us / epoch_us <= kMostEpochs)) {
    throw Error(
        ExitCode::usage,
        fmt::format("--early-epoch is {} us; it is above 0, and the schedules take at most {} of them",
                    epoch_us, kMostEpochs));
  }
  const int epochs = static_cast<int>(std::ceil(last_us / epoch_us));
  const auto reward = [&](const ProvenSchedule& of) {
    return early_delivery(of.topology, of.demand, of.schedule.sends, epoch_us, epochs);
  };
  return fmt::format("early delivery in {} epochs of {:.4g} us: {:.6g} before, {:.6g} there\n", epochs,
                     epoch_us, reward(before), reward(after));
}

std::string run_replay(const Settings& settings) {
  const std::filesystem::path path = settings.text("path");
  const ProvenSchedule before = read_schedule(path);
  naming_file(path, [&] { rondo::verify(before); });
  const auto topology = topology_of(settings, before.topology);
  const double size_bytes =
      settings.has("size") ? parse_size(settings.text("size")) : before.demand.size_bytes();
  const Demand sized = before.demand.with_size(size_bytes);
  if (sized.collective() == Collective::custom)
    settings.refuse_ignored("ready", "the schedule's own demand says ready_us itself; leave it out");
  Demand demand = with_ready_times(settings, sized);

  Schedule schedule = replayed_elsewhere(before, *topology, demand);
  const auto communicator = make_local_communicator();
  const LowerBound bound =
      rondo::bound({topology, with_ready_times(settings, asked_demand(sized))}, {*communicator}).best();
  const ProvenSchedule after{*topology, std::move(demand), std::move(schedule), bound, producer()};
  rondo::verify(after);
  if (settings.has("output")) write_schedule(settings.text("output"), after);
  return fmt::format("before: {}\nthere:  {}, {:.4g} times as long\n", describe(figures_of(before)),
                     describe(figures_of(after)), after.schedule.finish_us / before.schedule.finish_us) +
         early_deliveries(settings, before, after);
}

}  // namespace

Command replay_command() {
  return {
      .name = "replay",
      .arguments = "PATH [--topology OTHER] [--size SIZE] [--message-us US] [--output FILE]",
      .summary = "time a schedule anew: the same chunks, paths and order on other figures",
      .positional = "path",
      .notes =
          "What a schedule is worth on a fabric it was not made for: each transfer starts as early as the "
          "order "
          "of\nthe transfers allows, and the bound is that of the other fabric. Nodes have the same numbers; "
          "links are\nfound by their ends.\n\n"
          "Examples:\n"
          "  rondo replay runs/a --size 64MB\n"
          "  rondo replay runs/a --degrade 0.05:0.5 --output degraded.json\n"
          "  rondo replay runs/a --ready 1:100\n"
          "  rondo replay runs/a --message-us 1.7\n",
      .options = replay_option_groups,
      .run = on_root_alone(run_replay)};
}

}  // namespace rondo::cli
