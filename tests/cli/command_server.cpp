#include "command_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "program.hpp"

namespace rondo::test {

CommandServer::CommandServer() {
  signal(SIGPIPE, SIG_IGN);  // a server that has ended is seen by its answer
  int requests[2];
  int answers[2];
  if (pipe2(requests, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe to commands_in_turn");
  requests_ = requests[1];
  answers_ = answers[0];
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, requests[0], 3);
  posix_spawn_file_actions_adddup2(&files, answers[1], 4);
  std::vector<std::string> words = {RONDO_COMMANDS_IN_TURN, "3", "4"};
  const int error =
      posix_spawn(&pid_, RONDO_COMMANDS_IN_TURN, &files, nullptr, pointers(words).data(), environ);
  posix_spawn_file_actions_destroy(&files);
  close(requests[0]);
  close(answers[1]);
  if (error != 0) throw std::runtime_error("cannot start commands_in_turn");
}

CommandServer::~CommandServer() {
  close(requests_);  // after which it ends
  close(answers_);
  waitpid(pid_, nullptr, 0);
}

int CommandServer::run(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                       const std::filesystem::path& out, const std::filesystem::path& err, int seconds) {
  const nlohmann::json request = {{"arguments", arguments}, {"folder", folder}, {"out", out}, {"err", err}};
  const std::string line = request.dump() + "\n";
  std::string answer;
  if (write(requests_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return -1;
  while (!answer.ends_with('\n')) {
    pollfd next{answers_, POLLIN, 0};
    char byte = 0;
    if (poll(&next, 1, 1000 * seconds) <= 0 || read(answers_, &byte, 1) != 1) {
      kill(pid_, SIGKILL);
      return -1;
    }
    answer += byte;
  }
  return std::stoi(answer);
}

}  // namespace rondo::test
