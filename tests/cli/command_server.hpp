#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rondo::test {

/// Command lines of `rondo` on one rank, one after another, by one commands_in_turn: the program takes longer
/// to start MPI than for most of what is tested.
class CommandServer {
 public:
  CommandServer();
  ~CommandServer();
  CommandServer(const CommandServer&) = delete;
  CommandServer& operator=(const CommandServer&) = delete;

  /// Runs `rondo ARGUMENTS` in `folder`, its streams in the files `out` and `err`. The exit code; -1 where
  /// the server has ended or says nothing for `seconds`: it cannot be asked again.
  int run(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
          const std::filesystem::path& out, const std::filesystem::path& err, int seconds);

 private:
  int pid_ = -1;
  int requests_ = -1;
  int answers_ = -1;
};

}  // namespace rondo::test
