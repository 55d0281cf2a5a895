#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "program.hpp"

/// Every kind of bad input: exit code, a message with value, reason and remedy, nothing left behind; the same
/// on one rank and on four.
namespace rondo::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct BadInput {
  std::string name;
  Words arguments;
  int exit_code;
  Words in_message;
  std::map<std::string, std::string> files = {};  ///< written before
};

std::ostream& operator<<(std::ostream& out, const BadInput& bad) {
  return out << bad.name;
}

/// A ring of three GPUs; `from` is replaced by `to`.
std::string topology(const std::string& from = "", const std::string& to = "") {
  std::string text = R"({
  "format": "rondo-topology", "version": 1, "name": "three", "source": "by hand",
  "nodes": [{"id": 0, "kind": "gpu"}, {"id": 1, "kind": "gpu"}, {"id": 2, "kind": "gpu"}],
  "links": [{"id": 0, "src": 0, "dst": 1, "bandwidth_GBps": 10, "latency_us": 1},
            {"id": 1, "src": 1, "dst": 2, "bandwidth_GBps": 10, "latency_us": 1},
            {"id": 2, "src": 2, "dst": 0, "bandwidth_GBps": 10, "latency_us": 1}]
})";
  if (from.empty()) return text;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// `solve` of a small problem that is right but for what `more` says; later options of the same name replace.
Words solve(const std::string& fabric, std::map<std::string, std::string> more = {}) {
  std::map<std::string, std::string> options = {
      {"collective", "allgather"}, {"size", "3KB"}, {"engine", "list"}, {"gap", "100%"}, {"output", "out"}};
  for (const auto& [name, value] : more) options[name] = value;
  Words words = {"solve", "--topology", fabric};
  for (const auto& [name, value] : options) {
    if (!value.empty()) words.insert(words.end(), {"--" + name, value});
  }
  return words;
}

/// A topology file that is wrong in one place.
BadInput bad_topology(const std::string& name, const std::string& from, const std::string& to,
                      Words in_message, int exit_code = 65) {
  in_message.push_back("t.json");
  return {name, solve("t.json"), exit_code, std::move(in_message), {{"t.json", topology(from, to)}}};
}

BadInput bad_option(const std::string& name, const std::map<std::string, std::string>& options,
                    Words in_message, int exit_code = 64) {
  return {name, solve("t.json", options), exit_code, std::move(in_message), {{"t.json", topology()}}};
}

BadInput bad_demand(const std::string& name, const std::string& demand, Words in_message) {
  return {name,
          solve("t.json", {{"collective", ""}, {"size", ""}, {"demand", "d.json"}}),
          65,
          std::move(in_message),
          {{"t.json", topology()}, {"d.json", demand}}};
}

std::vector<BadInput> bad_inputs() {
  const std::string link0 = R"("src": 0, "dst": 1, "bandwidth_GBps": 10, "latency_us": 1)";
  return {
      {"missing_topology", solve("none.json"), 66, {"none.json"}},
      {"unknown_topology", solve("ndv3-2"), 66, {"ndv3-2", "did you mean 'ndv2-2'"}},
      {"topology_is_a_folder", solve("./"), 66, {"./"}},
      {"unknown_family", solve("tours:dims=2x2"), 64, {"tours", "did you mean 'torus'"}},
      {"unknown_parameter", solve("torus:dimensions=2x2"), 64, {"dimensions", "dims"}},
      {"missing_demand",
       solve("dgx1", {{"collective", ""}, {"size", ""}, {"demand", "d.json"}}),
       66,
       {"d.json"}},
      {"missing_config", {"solve", "--config", "c.cfg"}, 66, {"c.cfg"}},
      {"missing_schedule", {"verify", "s.h5"}, 66, {"s.h5"}},
      {"empty_file", solve("t.json"), 65, {"t.json"}, {{"t.json", ""}}},
      {"truncated_json", solve("t.json"), 65, {"t.json", "line"}, {{"t.json", topology().substr(0, 200)}}},
      {"invalid_json", solve("t.json"), 65, {"t.json", "line"}, {{"t.json", "{\"format\": rondo}"}}},
      bad_topology("unknown_key", "\"latency_us\"", "\"latncy_us\"", {"latncy_us"}),
      bad_topology("unsupported_key", "\"latency_us\": 1", "\"latency_us\": 1, \"bandwidth_steps\": []",
                   {"bandwidth_steps"}, 69),
      bad_topology("duplicate_id", "\"id\": 1, \"kind\"", "\"id\": 0, \"kind\"", {"id", "0"}),
      bad_topology("repeated_key", "\"version\": 1", "\"version\": 1, \"version\": 1", {"version"}),
      bad_topology("dangling_link", "\"dst\": 1", "\"dst\": 7", {"7"}),
      bad_topology("zero_bandwidth", "\"bandwidth_GBps\": 10", "\"bandwidth_GBps\": 0", {"bandwidth", "0"}),
      bad_topology("negative_bandwidth", "\"bandwidth_GBps\": 10", "\"bandwidth_GBps\": -3",
                   {"bandwidth", "-3"}),
      bad_topology("nan_bandwidth", "\"bandwidth_GBps\": 10", "\"bandwidth_GBps\": NaN", {"line"}),
      bad_topology("huge_bandwidth", "\"bandwidth_GBps\": 10", "\"bandwidth_GBps\": 1e400", {"1e400"}),
      bad_topology("negative_latency", "\"latency_us\": 1", "\"latency_us\": -0.5", {"latency", "-0.5"}),
      {"unreachable_gpu",
       solve("t.json"),
       65,
       {"GPU"},
       {{"t.json", topology(link0, R"("src": 0, "dst": 2, "bandwidth_GBps": 10, "latency_us": 1)")}}},
      {"one_gpu",
       solve("t.json"),
       65,
       {"t.json", "GPU"},
       {{"t.json",
         R"({"format": "rondo-topology", "version": 1, "name": "one", "nodes": [{"id": 0, "kind": "gpu"}], "links": []})"}}},
      bad_option("zero_chunks", {{"chunks", "0"}}, {"--chunks", "'0'", "from 1"}),
      bad_option("chunks_no_number", {{"chunks", "many"}}, {"--chunks", "many"}),
      bad_option("zero_size", {{"size", "0"}}, {"0"}),
      bad_option("size_of_no_unit", {{"size", "1GBB"}}, {"1GBB", "GB"}),
      bad_option("missing_size", {{"size", ""}}, {"--size is missing"}),
      bad_option("missing_output", {{"output", ""}}, {"--output is missing"}),
      bad_option("unknown_collective", {{"collective", "allgatter"}}, {"allgatter", "allgather", "alltoall"}),
      bad_option("unknown_engine", {{"engine", "magic"}}, {"magic", "list", "milp"}),
      bad_option("unknown_policy", {{"policy", "magic"}}, {"magic", "list"}),
      bad_option("unknown_decomposition", {{"engine", "rounds"}, {"decompose", "foo"}},
                 {"foo", "pop", "ncflow"}),
      bad_option("unknown_lp_solver", {{"lp-solver", "gurobi"}}, {"gurobi", "clp", "columns", "pdhg"}),
      bad_option("lax_lp_tolerance", {{"lp-tolerance", "0.5"}}, {"--lp-tolerance", "0.5", "0.01"}),
      bad_option("unknown_spacing", {{"epoch-spacing", "wide"}}, {"--epoch-spacing", "wide", "coarse"}),
      bad_option("unknown_symmetry", {{"symmetry", "yes"}}, {"--symmetry", "yes", "auto or off"}),
      bad_option("unknown_start", {{"engine", "rounds"}, {"start", "maybe"}},
                 {"--start", "maybe", "list or none"}),
      bad_option("root_out_of_range", {{"collective", "broadcast"}, {"root", "3"}}, {"3", "2"}),
      bad_option("gap_not_a_number", {{"gap", "nan"}}, {"--gap", "nan"}),
      bad_option("negative_time_limit", {{"time-limit", "-1"}}, {"--time-limit", "-1", "more than 0"}),
      bad_option("degrade_without_factor", {{"degrade", "0.5"}}, {"--degrade", "0.5", "FRACTION:FACTOR"}),
      bad_option("degrade_beyond_all", {{"degrade", "2:0.5"}}, {"2", "0 to 1"}),
      bad_option("unknown_forwarding", {{"switch-forwarding", "warp"}}, {"warp", "cut_through"}),
      bad_option("unknown_option", {{"topolgy", "x"}}, {"topolgy", "did you mean 'topology'"}),
      bad_option("size_and_demand", {{"demand", "d.json"}}, {"--demand", "--size"}),
      {"unknown_option_in_config",
       {"solve", "--config", "c.cfg"},
       64,
       {"c.cfg", "sise", "did you mean 'size'"},
       {{"c.cfg", "sise = 1GB\n"}}},
      {"unknown_command", {"slove"}, 64, {"slove", "did you mean 'solve'"}},
      {"no_command", {}, 64, {"no command", "solve"}},
      {"one_argument_too_many", {"verify", "a.h5", "b.h5"}, 64, {"b.h5", "one too many"}},
      bad_demand(
          "demand_from_nobody",
          R"({"format": "rondo-demand", "version": 1, "chunks": [{"id": 0, "bytes": 10, "sources": [], "destinations": [1]}]})",
          {"d.json", "sources"}),
      bad_demand(
          "demand_from_a_stranger",
          R"({"format": "rondo-demand", "version": 1, "chunks": [{"id": 0, "bytes": 10, "sources": [3], "destinations": [1]}]})",
          {"d.json", "3"}),
      {"foreign_output_folder",
       solve("t.json"),
       73,
       {"out", "notes.txt"},
       {{"t.json", topology()}, {"out/notes.txt", "mine"}}},
      {"output_is_a_file", solve("t.json"), 73, {"out", "file"}, {{"t.json", topology()}, {"out", "mine"}}},
      {"schedule_of_garbage", {"verify", "s.h5"}, 65, {"s.h5"}, {{"s.h5", std::string(2000, 'x')}}},
      {"schedule_too_short", {"verify", "s.h5"}, 65, {"s.h5"}, {{"s.h5", "rondo"}}},
      {"unknown_export_format",
       {"export", "s.h5", "--format", "xml", "--output", "s.xml"},
       64,
       {"xml", "json"}},
  };
}

/// Names and contents of all files, folders included.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    all[entry.path().lexically_relative(folder)] = entry.is_directory() ? "" : read_file(entry.path());
  }
  return all;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

/// Runs on one rank and on four.
void expect_refusal(const Words& arguments, int exit_code, const Words& in_message, const fs::path& folder) {
  const auto before = contents(folder);
  for (const int ranks : {1, 4}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const Outcome outcome = run(arguments, ranks, folder);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_EQ(outcome.out.find("finish"), std::string::npos) << outcome.out;
    EXPECT_EQ(count(outcome.err, "rondo: "), 1U) << outcome.err;
    for (const std::string& words : in_message)
      EXPECT_NE(outcome.err.find(words), std::string::npos) << words << " in\n" << outcome.err;
    EXPECT_EQ(contents(folder), before);
  }
}

class BadInputs : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputs, AreRefused) {
  const BadInput& bad = GetParam();
  const TemporaryFolder folder;
  for (const auto& [name, text] : bad.files) {
    fs::create_directories((folder.path() / name).parent_path());
    write_file(folder.path() / name, text);
  }
  expect_refusal(bad.arguments, bad.exit_code, bad.in_message, folder.path());
}

INSTANTIATE_TEST_SUITE_P(All, BadInputs, testing::ValuesIn(bad_inputs()),
                         [](const auto& bad) { return bad.param.name; });

TEST(BadFolder, ReadOnly) {
  const TemporaryFolder folder;
  write_file(folder.path() / "t.json", topology());
  fs::create_directory(folder.path() / "out");
  fs::permissions(folder.path() / "out", fs::perms::owner_read | fs::perms::owner_exec);
  expect_refusal(solve("t.json"), 73, {"out", "--output"}, folder.path());
  fs::permissions(folder.path() / "out", fs::perms::owner_all);
}

class SolvedFolder : public testing::Test {
 protected:
  SolvedFolder() {
    write_file(folder_.path() / "t.json", topology());
    const Outcome outcome = run(solve("t.json"), 1, folder_.path());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  const TemporaryFolder folder_;
};

TEST_F(SolvedFolder, OfAnotherProblem) {
  expect_refusal(solve("t.json", {{"size", "6KB"}}), 65, {"out", "size_bytes", "3000", "6000", "--force"},
                 folder_.path());
}

TEST_F(SolvedFolder, OfAnotherFabric) {
  write_file(folder_.path() / "t.json", topology("\"latency_us\": 1", "\"latency_us\": 2"));
  expect_refusal(solve("t.json"), 65, {"topology.links[0].latency_us"}, folder_.path());
}

TEST_F(SolvedFolder, WithACorruptedSchedule) {
  const fs::path schedule = folder_.path() / "out/schedule.h5";
  const std::string whole = read_file(schedule);
  for (const std::size_t at : {std::size_t{3}, std::size_t{700}, whole.size() - 1}) {
    SCOPED_TRACE(testing::Message() << "byte " << at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_file(schedule, damaged);
    expect_refusal({"verify", "out/schedule.h5"}, 65, {"schedule.h5"}, folder_.path());
  }
  write_file(schedule, whole.substr(0, whole.size() / 2));
  expect_refusal({"export", "out", "--output", "s.json"}, 65, {"schedule.h5"}, folder_.path());
  expect_refusal(solve("t.json"), 65, {"schedule.h5", "--force"}, folder_.path());
}

}  // namespace
}  // namespace rondo::test
