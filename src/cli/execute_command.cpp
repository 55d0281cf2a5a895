#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "command.hpp"
#include "rondo/core/error.hpp"
#include "rondo/core/units.hpp"
#include "rondo/execution/execute.hpp"
#include "rondo/io/read_as.hpp"
#include "rondo/io/schedule_files.hpp"
#include "rondo/msccl/xml.hpp"
#include "rondo/mscclpp/plan_files.hpp"

namespace rondo::cli {
namespace {

constexpr int kMostRepetitions = 100'000;
constexpr int kMostSlots = 1'000'000;

std::vector<OptionGroup> execute_option_groups() {
  return {
      {"Input",
       {{"path", "PATH", "",
         "the folder of a run, a schedule (FILE.h5, FILE.json), MSCCL XML (FILE.xml) or an execution plan of "
         "MSCCL++ (FILE.json)"}}},
      {"Execution",
       {{"bytes", "SIZE", "1MB", "size of the collective, as for solve; rounded up to whole chunks"},
        {"type", "NAME", "int64",
         "int64, double, float, uint8: the numbers that a collective combines; --bytes is rounded up to "
         "whole ones"},
        {"op", "NAME", "", "sum, prod, max, min: how it combines them; default: redop of XML, else sum"},
        {"repeat", "N", "1", "how often, each time with other data"},
        {"slots", "N", "2",
         "messages that a connection holds before its sender has to wait, 1 or more; 2 is what MSCCL's "
         "protocol "
         "Simple has room for"}}}};
}

execution::Arithmetic arithmetic_of(const Settings& settings, const std::string& default_op) {
  return {.number = execution::parse_number_type(settings.text("type")),
          .reduction = execution::parse_reduction(settings.has("op") ? settings.text("op") : default_op)};
}

/// Every rank makes the program from the same text.
std::vector<execution::Program> programs_of_xml(const std::string& text, double bytes,
                                                const Settings& settings) {
  const msccl::Program program = msccl::parse_xml(text);
  const bool says_how = !program.redop.empty() && program.redop != "nop";
  const execution::Arithmetic arithmetic = arithmetic_of(settings, says_how ? program.redop : "sum");
  std::vector<execution::Program> programs;
  for (const bool in_place : {false, true}) {
    if (in_place ? program.in_place : program.out_of_place) {
      programs.push_back(execution::from_msccl(program, bytes, in_place, arithmetic));
    }
  }
  if (programs.empty()) {
    throw Error(ExitCode::bad_data,
                "algo: inplace and outofplace are 0, so that it is never used; set at least one to 1");
  }
  return programs;
}

/// The text of a file that is an execution plan of MSCCL++; nothing for others.
std::optional<std::string> plan_text(const std::filesystem::path& path) {
  if (path.extension() != ".json" || std::filesystem::is_directory(path)) return std::nullopt;
  std::string text = read_text_file(path);
  if (!mscclpp::is_plan(parse_json(text, path.string()))) return std::nullopt;
  return text;
}

std::string right_outputs(const execution::Program& program) {
  if (!program.combines) return "every byte of the outputs is right";
  return fmt::format("every number of the outputs is right ({} of {}, {})",
                     to_string(program.arithmetic.reduction), to_string(program.arithmetic.number),
                     program.arithmetic.is_exact() ? "exactly" : "within the rounding of any order");
}

/// Collective.
std::string run(const execution::Program& program, const Communicator& communicator,
                const execution::ExecuteOptions& options) {
  const execution::ExecuteResult result = execution::execute(program, communicator, options);
  const std::string verdict = program.knows_result
                                  ? right_outputs(program)
                                  : "ran to its end (a custom program does not say what it is for)";
  return fmt::format(
      "{}: {} of {} ({} bytes) {}, {} GPUs on {} rank{}; {} messages with {} in {} repetition{}, {:.3g} ms\n",
      verdict, to_string(program.coll), format_size(static_cast<double>(program.size_bytes)),
      program.size_bytes, program.in_place ? "in place" : "out of place", program.num_gpus(),
      communicator.size(), communicator.size() == 1 ? "" : "s", result.messages,
      format_size(static_cast<double>(result.bytes)), options.repeat, options.repeat == 1 ? "" : "s",
      1e3 * result.seconds);
}

std::string run_execute(const Settings& settings, const Communicator& communicator) {
  const std::filesystem::path path = settings.text("path");
  const double bytes = parse_size(settings.text("bytes"));
  const execution::ExecuteOptions options{
      .repeat = static_cast<int>(settings.integer("repeat", 1, kMostRepetitions)),
      .slots = static_cast<int>(settings.integer("slots", 1, kMostSlots))};
  const bool is_xml = path.extension() == ".xml";
  // The root reads; the others get the text, so that all have the same or the same error.
  const std::string text = to_text(on_root(communicator, [&] {
    const std::optional<std::string> plan = is_xml ? std::nullopt : plan_text(path);
    if (plan) return to_bytes(*plan);
    return to_bytes(is_xml ? read_text_file(path) : schedule_to_json(read_schedule(path)).dump());
  }));
  const auto programs = naming_file(path, [&] {
    if (is_xml) return programs_of_xml(text, bytes, settings);
    const Json json = parse_json(text, path.string());
    const execution::Arithmetic arithmetic = arithmetic_of(settings, "sum");
    return std::vector{mscclpp::is_plan(json)
                           ? execution::from_plan(mscclpp::plan_from_json(json), bytes, arithmetic)
                           : execution::from_schedule(schedule_from_json(json), bytes, arithmetic)};
  });
  const bool combines = std::ranges::any_of(programs, &execution::Program::combines);
  for (const char* name : {"type", "op"}) {
    settings.refuse_ignored(
        name,
        combines ? "" : fmt::format("{} combines nothing; leave it out", to_string(programs.front().coll)));
  }
  std::string report;
  for (const execution::Program& program : programs) {
    report += naming_file(path, [&] { return run(program, communicator, options); });
  }
  return report;
}

}  // namespace

Command execute_command() {
  return {
      .name = "execute",
      .arguments = "PATH [--bytes SIZE] [--repeat N]",
      .summary =
          "run a schedule, MSCCL XML or an execution plan of MSCCL++ with real bytes and check all that the "
          "outputs hold",
      .positional = "path",
      .notes =
          "The GPUs are dealt over the ranks (any number of them); every message of the schedule is a "
          "nonblocking MPI\n"
          "message, sent in the schedule's order once its data is there. Times are this machine's and "
          "say nothing of "
          "GPUs.\n"
          "A collective that combines does so with real numbers: whole ones have to be exact, floating-point "
          "sums and\n"
          "products of n numbers may differ by (n - 1) eps times the sum of their magnitudes, the product's "
          "magnitude.\n"
          "XML runs for every placement that it declares. Exit code 0 when all outputs are equal; 65 for "
          "a difference, "
          "with GPU\n"
          "and byte, and for a deadlock, with who waits for whom.\n\n"
          "Examples:\n"
          "  rondo execute runs/a\n"
          "  mpirun -n 4 rondo execute allgather.xml --bytes 16MB --repeat 10\n",
      .options = execute_option_groups,
      .run = run_execute};
}

}  // namespace rondo::cli
