#include <fmt/format.h>

#include <filesystem>
#include <limits>

#include "command.hpp"
#include "progress.hpp"
#include "rondo/core/units.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/topology_files.hpp"
#include "rondo/profile/profile.hpp"

namespace rondo::cli {
namespace {

std::vector<OptionGroup> profile_option_groups() {
  return {
      {"Measuring",
       {{"passes", "N", "5",
         "over all pairs, 3 or more; how their figures differ is a part of the stated errors"},
        {"max-bytes", "SIZE", "4MB", "of the longest message, 65536 to 1 GB; bandwidth shows in long ones"}}},
      {"Output",
       {{"output", "FILE", "", "the topology, JSON of format rondo-topology; replaced if it exists"},
        {"figures", "FILE", "", "figures and errors of every link, separated by tabs"}}}};
}

std::string run_profile(const Settings& settings, const Communicator& communicator) {
  const std::filesystem::path output = settings.text("output");
  profile::ProfileOptions options;
  options.passes = static_cast<int>(settings.integer("passes", 0, 10'000));
  options.max_bytes = parse_size(settings.text("max-bytes"));
  ProgressLine line;
  options.progress = [&](const std::string& text) {
    if (communicator.is_root()) line.show(text);
  };
  const auto wire = profile::make_mpi_wire(communicator);
  const profile::FabricProfile measured = profile::measure_fabric(*wire, options);
  const Topology topology = profile::to_topology(measured, output.stem().string());
  on_root(communicator, [&] {
    write_text_file(output, format_json(topology_to_json(topology)));
    if (settings.has("figures")) write_text_file(settings.text("figures"), profile::to_tsv(measured));
    return Bytes{};
  });
  return fmt::format("{}wrote {}\n", profile::describe(measured), output.string());
}

}  // namespace

Command profile_command() {
  return {.name = "profile",
          .arguments = "--output FILE [--passes N] [--max-bytes SIZE]",
          .summary = "measure the network between the ranks of this job and write it as a topology",
          .positional = "",
          .notes =
              "Start one rank for each GPU, bound to the network card that the GPU uses. Every pair of ranks "
              "is timed "
              "alone\n"
              "(1, 4 and 16 messages of 8 bytes, one message of growing size); latency, message cost and "
              "bandwidth are "
              "the\n"
              "least-squares fit of t = latency + n (message + bytes / bandwidth). Errors are two standard "
              "errors. Then "
              "every\n"
              "two links are timed together, and whole clusters at once: what is slower than alone shares "
              "bandwidth. "
              "Latencies\n"
              "there and back are taken as equal, since clocks of two machines do not tell them apart.\n\n"
              "Example:\n"
              "  mpirun -n 8 rondo profile --output cluster.json\n"
              "  rondo compare --topology cluster.json --size 1MB,1GB\n",
          .options = profile_option_groups,
          .run = run_profile};
}

}  // namespace rondo::cli
