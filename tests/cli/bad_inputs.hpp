#pragma once

#include <functional>
#include <map>

#include "program.hpp"

/// The bad inputs of test_bad_input.
namespace rondo::test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct BadInput {
  std::string name;
  Words arguments;
  int exit_code;
  Words in_message;
  std::map<std::string, std::string> files = {};  ///< written before
  /// Set: it begins with the folder of a solved problem, which this changes.
  std::function<void(const fs::path&)> change_solved = {};
};

inline std::ostream& operator<<(std::ostream& out, const BadInput& bad) {
  return out << bad.name;
}

/// A ring of three GPUs; `from` is replaced by `to`.
inline std::string topology(const std::string& from = "", const std::string& to = "") {
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

/// Changes bit 2 of a byte; counted from the end where `at` is negative.
inline void damage(const fs::path& path, std::ptrdiff_t at) {
  std::string text = read_file(path);
  char& byte = text[static_cast<std::size_t>(at < 0 ? std::ssize(text) + at : at)];
  byte = static_cast<char>(byte ^ 4);
  write_file(path, text);
}

inline void cut_in_half(const fs::path& path) {
  const std::string text = read_file(path);
  write_file(path, text.substr(0, text.size() / 2));
}

/// `solve` of a small problem that is right but for what `more` says; later options of the same name replace.
inline Words solve(const std::string& fabric, std::map<std::string, std::string> more = {}) {
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
inline BadInput bad_topology(const std::string& name, const std::string& from, const std::string& to,
                             Words in_message, int exit_code = 65) {
  in_message.push_back("t.json");
  return {name, solve("t.json"), exit_code, std::move(in_message), {{"t.json", topology(from, to)}}};
}

inline BadInput bad_option(const std::string& name, const std::map<std::string, std::string>& options,
                           Words in_message, int exit_code = 64) {
  return {name, solve("t.json", options), exit_code, std::move(in_message), {{"t.json", topology()}}};
}

inline BadInput bad_demand(const std::string& name, const std::string& demand, Words in_message) {
  return {name,
          solve("t.json", {{"collective", ""}, {"size", ""}, {"demand", "d.json"}}),
          65,
          std::move(in_message),
          {{"t.json", topology()}, {"d.json", demand}}};
}

inline BadInput bad_compare(const std::string& name, Words more, Words in_message, int exit_code = 64) {
  Words words{"compare", "--topology", "t.json"};
  words.insert(words.end(), more.begin(), more.end());
  return {name, words, exit_code, std::move(in_message), {{"t.json", topology()}}};
}

/// Of the three GPUs; without --size.
inline BadInput bad_counts(const std::string& name, const std::string& counts, Words in_message,
                           std::map<std::string, std::string> options = {}) {
  options.insert({{"size", ""}, {"counts", "c.txt"}});
  in_message.push_back("c.txt");
  return {
      name, solve("t.json", options), 65, std::move(in_message), {{"t.json", topology()}, {"c.txt", counts}}};
}

inline BadInput bad_schedule(const std::string& name, const Words& arguments,
                             const std::function<void(const fs::path&)>& change,
                             const Words& in_message = {"schedule.h5"}) {
  return {name,       arguments, 65,
          in_message, {},        [=](const fs::path& folder) { change(folder / "out/schedule.h5"); }};
}

inline std::vector<BadInput> bad_inputs() {
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
      bad_topology("memory_below_0", "\"kind\": \"gpu\"", "\"kind\": \"gpu\", \"buffer_bytes\": -1",
                   {"node 0", "buffer_bytes is -1"}),
      bad_topology("no_steps", "\"latency_us\": 1", "\"latency_us\": 1, \"bandwidth_steps\": []",
                   {"links[0]", "bandwidth_steps is empty"}),
      bad_topology("key_of_version_2", "\"latency_us\": 1", "\"latency_us\": 1, \"message_us\": 1",
                   {"links[0]", "message_us", "version 2"}),
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
      bad_option("unknown_join", {{"join", "yes"}}, {"--join", "yes", "auto or off"}),
      bad_option("unknown_symmetry", {{"symmetry", "yes"}}, {"--symmetry", "yes", "auto or off"}),
      bad_option("unknown_start", {{"engine", "rounds"}, {"start", "maybe"}},
                 {"--start", "maybe", "list or none"}),
      bad_option("root_out_of_range", {{"collective", "broadcast"}, {"root", "3"}}, {"3", "2"}),
      bad_option("gap_not_a_number", {{"gap", "nan"}}, {"--gap", "nan"}),
      bad_option("negative_time_limit", {{"time-limit", "-1"}}, {"--time-limit", "-1", "more than 0"}),
      bad_option("degrade_without_factor", {{"degrade", "0.5"}}, {"--degrade", "0.5", "FRACTION:FACTOR"}),
      bad_option("without_a_pair", {{"without", "0"}}, {"--without", "'0'", "NODE:NODE"}),
      bad_option("peers_of_none", {{"peers", "0"}}, {"--peers", "'0'", "few, many"}),
      bad_option("peers_without_switches", {{"peers", "2"}}, {"--peers", "switches", "leave it out"}),
      bad_option("without_an_unknown_node", {{"without", "0:gone"}}, {"--without", "'gone'"}),
      bad_option("without_a_link_to_itself", {{"without", "0:0"}}, {"no link joins"}),
      bad_option("degrade_beyond_all", {{"degrade", "2:0.5"}}, {"2", "0 to 1"}),
      bad_option("unknown_forwarding", {{"switch-forwarding", "warp"}}, {"warp", "cut_through"}),
      bad_option("unknown_option", {{"topolgy", "x"}}, {"topolgy", "did you mean 'topology'"}),
      {"family_parameter_as_an_option",
       {"topology", "generate", "mesh", "--dims", "4x4", "--output", "f.json"},
       64,
       {"'dims'", "mesh:dims=VALUE"}},
      bad_option("size_and_demand", {{"demand", "d.json"}}, {"--demand", "--size"}),
      {"unknown_option_in_config",
       {"solve", "--config", "c.cfg"},
       64,
       {"c.cfg", "sise", "did you mean 'size'"},
       {{"c.cfg", "sise = 1GB\n"}}},
      // The library that reads options would put these into its message again and again.
      {"placeholder_of_a_value",
       {"solve", "--config", "c.cfg"},
       64,
       {"c.cfg", "'%value%'"},
       {{"c.cfg", "force = ('%value%')\n"}}},
      {"placeholder_of_a_line",
       {"solve", "--config", "c.cfg"},
       64,
       {"c.cfg", "'%invalid_line%'"},
       {{"c.cfg", "100% %invalid_line%\n"}}},
      {"placeholder_in_an_argument", {"solve", "--force=%original_token%"}, 64, {"'%original_token%'"}},
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
      bad_demand(
          "sum_of_one_twice",
          R"({"format": "rondo-demand", "version": 2, "chunks": [{"id": 0, "bytes": 10, "sources": [2, 0, 2], "destinations": [1], "reduce": true}]})",
          {"d.json", "source 2 is named twice"}),
      {"foreign_output_folder",
       solve("t.json"),
       73,
       {"out", "notes.txt"},
       {{"t.json", topology()}, {"out/notes.txt", "mine"}}},
      {"output_is_a_file", solve("t.json"), 73, {"out", "file"}, {{"t.json", topology()}, {"out", "mine"}}},
      {"schedule_of_garbage", {"verify", "s.h5"}, 65, {"s.h5"}, {{"s.h5", std::string(2000, 'x')}}},
      {"schedule_too_short", {"verify", "s.h5"}, 65, {"s.h5"}, {{"s.h5", "rondo"}}},
      {"solved_for_another_size",
       solve("t.json", {{"size", "6KB"}}),
       65,
       {"out", "size_bytes", "3000", "6000", "--force"},
       {},
       [](const fs::path&) {}},
      {"solved_for_another_fabric",
       solve("t.json"),
       65,
       {"topology.links[0].latency_us"},
       {},
       [](const fs::path& folder) {
         write_file(folder / "t.json", topology("\"latency_us\": 1", "\"latency_us\": 2"));
       }},
      {"rounds_lead_elsewhere",
       solve("t.json"),
       73,
       {"out", "rounds", "symbolic link"},
       {},
       [](const fs::path& folder) { fs::create_symlink(folder, folder / "out/rounds"); }},
      bad_topology("control_characters", "\"latency_us\"", "\"\\u001b[2J\"", {"unknown key '?[2J'"}),
      bad_option("from_nowhere", {{"from", "kept"}}, {"kept", "No such file"}, 66),
      bad_option("from_no_schedule", {{"from", "t.json"}}, {"t.json"}, 65),
      bad_option("group_of_one", {{"group", "1"}}, {"--group is '1'", "at least two"}),
      bad_option("group_of_a_stranger", {{"group", "0,3"}}, {"--group", "GPU 3", "0 to 2"}),
      bad_option("group_names_twice", {{"group", "0-1,1"}}, {"--group", "GPU 1 twice"}),
      bad_option("group_in_disorder", {{"group", "2,0"}}, {"--group", "write 0,2"}),
      bad_option("group_backwards", {{"group", "2-0"}}, {"--group", "write 0-2"}),
      bad_option("group_no_list", {{"group", "0-"}}, {"--group", "'0-'", "0-7,16-23"}),
      bad_option("relay_sometimes", {{"group", "0,1"}, {"relay", "some"}}, {"--relay", "any or none"}),
      bad_option("relay_of_all", {{"relay", "none"}}, {"--relay is 'none'", "every GPU takes part", "leave"}),
      bad_option("relay_of_all_by_name", {{"relay", "any"}}, {"--relay is 'any'", "--group"}),
      bad_option("root_outside", {{"collective", "broadcast"}, {"group", "0,1"}, {"root", "2"}},
                 {"root is GPU 2", "0-1"}),
      bad_option("group_cut_off", {{"group", "0,1"}, {"relay", "none"}},
                 {"GPU 1", "GPU 0", "relay is none", "let others relay"}, 65),
      bad_option("scan", {{"collective", "scan"}}, {"scan", "left out", "known are allgather"}),
      bad_option("v_by_name", {{"collective", "alltoallv"}}, {"alltoallv", "give alltoall and --counts"}),
      bad_option("counts_of_one_buffer", {{"collective", "allreduce"}, {"size", ""}, {"counts", "c.txt"}},
                 {"--counts", "allreduce has one buffer"}),
      bad_option("counts_and_size", {{"counts", "c.txt"}}, {"--size", "--counts"}),
      bad_option("missing_counts", {{"size", ""}, {"counts", "c.txt"}}, {"c.txt"}, 66),
      bad_option("counts_of_a_folder", {{"size", ""}, {"counts", "."}}, {"."}, 66),
      bad_counts("too_few_counts", "1 2", {"2 counts", "3 GPUs", "takes 3"}),
      bad_counts("too_many_counts_for_a_group", "[1, 2, 3]", {"3 counts", "takes 2"}, {{"group", "0,2"}}),
      bad_counts("negative_count", "1 2 -3", {"count 2 of line 1 is '-3'", "0 or more"}),
      bad_counts("fractional_count", "[1, 2.5, 3]", {"count 1 is 2.5", "whole"}),
      bad_counts("no_count", "1 2 x", {"count 2 of line 1 is 'x'"}),
      bad_counts("count_in_words", "[1, 2, \"3\"]", {"count 2 is \"3\""}),
      bad_counts("counts_as_object", "{\"0\": 1}", {"JSON object", "array"}),
      bad_counts("counts_of_nothing", "0 0 0", {"all counts are 0"}),
      bad_counts("counts_that_stay", "[[1, 0, 0], [0, 1, 0], [0, 0, 1]]", {"counts are 0 wherever"},
                 {{"collective", "alltoall"}}),
      bad_counts("a_row_too_few", "1 2 3\n4 5 6\n", {"2 rows", "takes 3 of 3"}, {{"collective", "alltoall"}}),
      bad_counts("not_square", "[[0, 2, 3], [4, 0], [5, 6, 0]]",
                 {"row 1 has 2 counts", "takes 3 in each row"}, {{"collective", "alltoall"}}),
      bad_counts("mixed_rows", "[[0, 2, 3], 4]", {"row 1 is no array"}, {{"collective", "alltoall"}}),
      {"demand_leaves_the_group",
       solve("t.json", {{"collective", ""}, {"size", ""}, {"demand", "d.json"}, {"group", "0,1"}}),
       65,
       {"d.json", "a destination is GPU 2", "group 0-1"},
       {{"t.json", topology()},
        {"d.json",
         R"({"format": "rondo-demand", "version": 1, "chunks": [{"id": 0, "bytes": 10, "sources": [0], "destinations": [1, 2]}]})"}}},
      {"demand_and_counts",
       solve("t.json", {{"collective", ""}, {"size", ""}, {"demand", "d.json"}, {"counts", "c.txt"}}),
       64,
       {"--counts", "--demand"},
       {{"t.json", topology()},
        {"d.json",
         R"({"format": "rondo-demand", "version": 1, "chunks": [{"id": 0, "bytes": 10, "sources": [0], "destinations": [1, 2]}]})"}}},
      bad_schedule("damaged_magic", {"verify", "out/schedule.h5"},
                   [](const fs::path& path) { damage(path, 3); }),
      bad_schedule("damaged_content", {"verify", "out/schedule.h5"},
                   [](const fs::path& path) { damage(path, 700); }),
      bad_schedule("damaged_end", {"verify", "out/schedule.h5"},
                   [](const fs::path& path) { damage(path, -1); }),
      bad_schedule("half_to_export", {"export", "out", "--output", "s.json"}, cut_in_half),
      bad_schedule("half_to_solve", solve("t.json"), cut_in_half, {"schedule.h5", "--force"}),
      {"compare_without_size",
       {"compare", "--topology", "t.json"},
       64,
       {"--size is missing"},
       {{"t.json", topology()}}},
      bad_compare("compare_one_size_twice", {"--size", "1KB,2KB,1000B"}, {"--size", "1000B twice"}),
      bad_compare("compare_an_unknown_collective", {"--size", "1KB", "--collective", "allgather,scan"},
                  {"scan"}),
      bad_compare("compare_a_custom_collective", {"--size", "1KB", "--collective", "custom"},
                  {"custom", "--demand"}),
      bad_compare("compare_no_collective", {"--size", "1KB", "--collective", "allgather,"}, {"''"}),
      bad_compare("compare_a_root_of_none", {"--size", "1KB", "--root", "1"}, {"--root", "root"}),
      bad_compare("compare_forces_nothing", {"--size", "1KB", "--force"}, {"--force", "--json"}),
      bad_compare("compare_into_another_file", {"--size", "1KB", "--json", "t.json"}, {"t.json"}, 65),
      {"machine_without_gpus", solve("m.xml"), 65, {"m.xml line 1", "no GPU"}, {{"m.xml", "<system/>"}}},
      {"matrix_without_names",
       solve("m.txt"),
       65,
       {"m.txt", "nvidia-smi -L"},
       {{"m.txt", "  GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n"}}},
      {"compose_an_unknown_machine",
       {"topology", "compose", "--node", "dgx-h10", "--nodes", "2", "--output", "f.json"},
       66,
       {"dgx-h10", "did you mean 'dgx-h100'"}},
      {"compose_a_fabric",
       {"topology", "compose", "--node", "t.json", "--nodes", "2", "--output", "f.json"},
       65,
       {"t.json", "NCCL_TOPO_DUMP_FILE"},
       {{"t.json", topology()}}},
      {"compose_no_nodes",
       {"topology", "compose", "--node", "dgx1v", "--nodes", "0", "--output", "f.json"},
       64,
       {"--nodes", "'0'"}},
      {"compose_an_unknown_network",
       {"topology", "compose", "--node", "dgx1v", "--nodes", "2", "--network", "tails", "--output", "f.json"},
       64,
       {"'tails'", "did you mean 'rails'"}},
      {"unknown_export_format",
       {"export", "s.h5", "--format", "xml", "--output", "s.xml"},
       64,
       {"xml", "json"}},
  };
}

}  // namespace rondo::test
