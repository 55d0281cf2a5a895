#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "rondo/cli/command_line.hpp"
#include "rondo/io/files.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/parallel/communicator.hpp"

// commands_in_turn FOLDER: the command lines of FOLDER/cases.json, one after another, as one program on any
// number of ranks. Each runs in FOLDER/NAME; FOLDER/outcomes/NAME.RANK.{out,err,code} keep what every rank
// said.
//
// commands_in_turn REQUESTS ANSWERS: on one rank, the command lines that come by the descriptor REQUESTS, a
// JSON object a line: arguments, folder, and the files out and err for its streams. Each exit code goes back
// by the descriptor ANSWERS (command_server.hpp, tests/conformance/engines_and_replays.py).
namespace {

namespace fs = std::filesystem;

void redirect(int stream, const fs::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || ::dup2(file, stream) < 0) std::abort();
  ::close(file);
}

int run(const rondo::Json& next, const fs::path& folder, const fs::path& out, const fs::path& err,
        rondo::Communicator& communicator) {
  fs::current_path(folder);
  redirect(STDOUT_FILENO, out);
  redirect(STDERR_FILENO, err);
  const int code = rondo::run_command_line(next["arguments"].get<std::vector<std::string>>(), communicator);
  std::cout.flush();
  return code;
}

void run_file(const fs::path& folder, rondo::Communicator& communicator) {
  const rondo::Json cases = rondo::parse_json(rondo::read_text_file(folder / "cases.json"), "cases.json");
  for (const rondo::Json& next : cases) {
    const auto name = next["name"].get<std::string>();
    const std::string stem = folder / "outcomes" / fmt::format("{}.{}", name, communicator.rank());
    const int code = run(next, folder / name, stem + ".out", stem + ".err", communicator);
    std::ofstream(stem + ".code") << code;
  }
}

void serve(int asked, int answered, rondo::Communicator& communicator) {
  for (const int pipe : {asked, answered}) ::fcntl(pipe, F_SETFD, FD_CLOEXEC);
  std::ifstream requests(fmt::format("/dev/fd/{}", asked));
  for (std::string line; std::getline(requests, line);) {
    const rondo::Json next = rondo::parse_json(line, "a request");
    const int code = run(next, next["folder"].get<std::string>(), next["out"].get<std::string>(),
                         next["err"].get<std::string>(), communicator);
    ::dprintf(answered, "%d\n", code);
  }
}

}  // namespace

int main(int argc, char** argv) {
  rondo::MpiSession session(&argc, &argv);
  const auto communicator = rondo::make_world_communicator();
  if (argc == 2)
    run_file(argv[1], *communicator);
  else
    serve(std::stoi(argv[1]), std::stoi(argv[2]), *communicator);
  return 0;
}
