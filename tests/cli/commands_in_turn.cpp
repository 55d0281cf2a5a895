#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

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
namespace {

namespace fs = std::filesystem;

void redirect(int stream, const fs::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || ::dup2(file, stream) < 0) std::abort();
  ::close(file);
}

}  // namespace

int main(int argc, char** argv) {
  rondo::MpiSession session(&argc, &argv);
  const auto communicator = rondo::make_world_communicator();
  const fs::path folder = argv[1];
  const rondo::Json cases = rondo::parse_json(rondo::read_text_file(folder / "cases.json"), "cases.json");
  for (const rondo::Json& next : cases) {
    const auto name = next["name"].get<std::string>();
    const std::string stem = folder / "outcomes" / fmt::format("{}.{}", name, communicator->rank());
    fs::current_path(folder / name);
    redirect(STDOUT_FILENO, stem + ".out");
    redirect(STDERR_FILENO, stem + ".err");
    const int code =
        rondo::run_command_line(next["arguments"].get<std::vector<std::string>>(), *communicator);
    std::cout.flush();
    std::ofstream(stem + ".code") << code;
  }
  return 0;
}
