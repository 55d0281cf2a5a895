#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "command.hpp"
#include "fabrics.hpp"
#include "figures.hpp"
#include "rondo/catalogue/repairs.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/core/verify.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/run_lock.hpp"
#include "rondo/io/schedule_files.hpp"
#include "rondo/io/schedule_hdf5.hpp"
#include "rondo/pipeline/repair.hpp"
#include "run.hpp"
#include "single_failures.hpp"

namespace rondo::cli {
namespace {

std::string why_all_ignored(const Settings& settings) {
  for (const char* other : {"without", "degrade", "whole"}) {
    if (settings.has(other)) return fmt::format("--{} is for one failure; leave one of them out", other);
  }
  return "";
}

std::string why_no_catalogue(const Settings& settings) {
  if (!settings.has("all-single-failures"))
    return "it is for --all-single-failures; give that, or leave it out";
  return settings.has("output") ? "--output is the folder then; leave one of them out" : "";
}

std::vector<OptionGroup> repair_option_groups() {
  return {
      {"Input",
       {{"path", "PATH", "", "the schedule that is running: FILE.h5, FILE.json or the folder of a run"}}},
      {"Failure",
       {{"at", "US", "", "when it happens, from the begin of the schedule"},
        {"without", "NODE:NODE,...", "",
         "the links between two nodes, both ways, are gone from then on, such as c0g3:rail3"},
        {"degrade", "NODE:NODE:FACTOR,...", "",
         "the links between two nodes have FACTOR of their bandwidth from then on, such as c0g3:rail3:0.5; "
         "what they transmit just then is lost"},
        {"all-single-failures", "", "",
         "each pair of nodes that links join loses these in turn, dealt over the ranks; a repeated call goes "
         "on",
         why_all_ignored}}},
      {"Output",
       {{"output", "FILE", "",
         "what has to be done from then on, as FILE.json or HDF5: its time 0 is the failure, its fabric "
         "the one that is left; of --all-single-failures the folder for them, with failures.json"},
        {"catalogue", "DIR", "",
         "keeps what --all-single-failures makes in a catalogue, where rondo catalogue lookup finds it by "
         "--at and "
         "--failed; PATH is what rondo catalogue lookup --output gave",
         why_no_catalogue},
        {"whole", "FILE", "",
         "the whole schedule, with what happened before, on a fabric whose links fail at that time"}}}};
}

Failure failure_of(const Settings& settings, const Topology& topology) {
  if (!settings.has("without") && !settings.has("degrade"))
    throw Error(
        ExitCode::usage,
        "nothing fails; give --without NODE:NODE, --degrade NODE:NODE:FACTOR or --all-single-failures");
  Failure failure{settings.fraction("at"), {}};
  const auto add = [&](const LinkSelector& selected, double factor) {
    for (const LinkId l : links_of(topology, selected)) {
      const auto known = [&](const LinkFailure& f) { return f.link == l; };
      if (std::ranges::any_of(failure.links, known)) {
        throw Error(ExitCode::usage,
                    fmt::format("the links between {} fail twice; name them once, in --without or --degrade",
                                selected.text));
      }
      failure.links.push_back({l, factor});
    }
  };
  if (settings.has("without")) {
    for (const LinkSelector& selected : link_selectors("without", settings.text("without"), topology, false))
      add(selected, 0);
  }
  if (settings.has("degrade")) {
    for (const LinkSelector& selected : link_selectors("degrade", settings.text("degrade"), topology, true)) {
      if (!(selected.factor > 0 && selected.factor < 1)) {
        throw Error(ExitCode::usage,
                    fmt::format("--degrade gives the links between {} the factor {}; it is above 0 and below "
                                "1 (--without removes them)",
                                selected.text, selected.factor));
      }
      add(selected, selected.factor);
    }
  }
  return failure;
}

ProvenSchedule read_running(const Settings& settings) {
  const std::filesystem::path path = settings.text("path");
  ProvenSchedule running = read_schedule(path);
  naming_file(path, [&] { verify(running); });
  return running;
}

std::string repair_one(const Settings& settings) {
  const Stopwatch clock;
  const ProvenSchedule running = read_running(settings);
  const Failure failure = failure_of(settings, running.topology);
  const auto communicator = make_local_communicator();
  const Repair made = rondo::repair(running, failure, {*communicator});
  std::string text = fmt::format("at {:.7g} us: {} deliveries lost, {} in flight land by {:.7g} us\n",
                                 failure.at_us, made.lost, made.in_flight, made.landed_us);
  if (made.rest) {
    text += fmt::format("rest:  {} ({})\n", describe(figures_of(*made.rest)), made.made_by);
  } else if (settings.has("output")) {
    throw Error(ExitCode::bad_data,
                fmt::format("nothing is left to do at {:.7g} us: all that is wanted has arrived or is in "
                            "flight on other links; leave --output out",
                            failure.at_us));
  }
  text += fmt::format("whole: finish {:.7g} us, {:.7g} us without the failure; {:.3f} s\n",
                      made.whole.schedule.finish_us, running.schedule.finish_us, clock.seconds());
  if (settings.has("output")) write_schedule(settings.text("output"), *made.rest);
  if (settings.has("whole")) write_schedule(settings.text("whole"), made.whole);
  return text;
}

std::filesystem::path folder_in_catalogue(const std::filesystem::path& path, const ProvenSchedule& running,
                                          double at_us) {
  const catalogue::Folder folder = catalogue::Folder::open(path);
  const std::string fabric = catalogue::fingerprint(running.topology);
  if (const auto all = folder.fabrics(); std::ranges::find(all, fabric) == all.end()) {
    throw Error(ExitCode::no_input,
                fmt::format("the catalogue {} is not of the fabric '{}' (fingerprint {}); it is of {}",
                            path.string(), running.topology.name(), fabric, fmt::join(all, ", ")));
  }
  return catalogue::make_repairs_folder(folder,
                                        {fabric, schedule_digest(running.demand, running.schedule), at_us});
}

/// Collective. All ranks work on what the root has read.
std::string run_repair(const Settings& settings, const Communicator& communicator) {
  if (!settings.has("all-single-failures")) return on_root_alone(repair_one)(settings, communicator);
  const double at_us = settings.fraction("at");
  std::optional<RunLock> lock;  // of a catalogue, on the root
  std::filesystem::path folder = settings.has("catalogue") ? "" : settings.text("output");
  const std::string text = from_root(communicator, [&] {
    const ProvenSchedule running = read_running(settings);
    live_state(running, at_us, {});  // a time that is wrong makes no folder
    if (settings.has("catalogue")) {
      catalogue::Folder::open(settings.text("catalogue"));
      lock.emplace(settings.text("catalogue"));
      folder = folder_in_catalogue(settings.text("catalogue"), running, at_us);
    }
    return Json{{"folder", folder.string()}, {"running", schedule_to_json(running)}}.dump();
  });
  const Json told = parse_json(text, "the running schedule");
  return repair_single_failures(schedule_from_json(told["running"]), at_us, told["folder"].get<std::string>(),
                                communicator);
}

}  // namespace

Command repair_command() {
  return {
      .name = "repair",
      .arguments = "PATH --at US --without NODE:NODE,... [--output FILE]",
      .summary = "a schedule of what is left to do when links fail while a schedule is running",
      .positional = "path",
      .notes =
          "What has not wholly arrived over a link that is gone is lost; other transfers that have begun "
          "land. From\nthen on each GPU sends what it has, over the links that are left. The rest is "
          "replayed, by itself and after\nwhat happened, and has a bound with a certificate: rondo verify "
          "checks both files.\n\n"
          "Examples:\n"
          "  rondo repair runs/a --at 1200 --without c0g3:rail3 --output rest.json\n"
          "  rondo repair runs/a --at 1200 --degrade c0g3:rail3:0.5 --whole whole.h5\n"
          "  mpirun -n 2 rondo repair runs/a --at 1200 --all-single-failures --output failures\n"
          "  rondo repair ag.h5 --at 1200 --all-single-failures --catalogue ndv2\n",
      .options = repair_option_groups,
      .run = run_repair};
}

}  // namespace rondo::cli
