#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "child_process.hpp"
#include "hdf5_content.hpp"
#include "memory_file.hpp"
#include "rondo/core/error.hpp"
#include "rondo/parallel/messages.hpp"

// Stands in for io/child_process.cpp: one child reads file after file until one of them is its end, as
// starting a sanitized process takes ten times as long as reading.
namespace rondo {
namespace {

constexpr unsigned kMaxSeconds = 2;     // a whole file takes a millisecond; some end in circles
constexpr int kMaxFilesOfChild = 2000;  // libhdf5 loses memory on malformed files

void read_exactly(int from, void* data, std::size_t size, bool& ended) {
  for (std::size_t done = 0; done < size && !ended;) {
    const ssize_t count = ::read(from, static_cast<char*>(data) + done, size - done);
    if (count <= 0) ended = true;
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
}

void write_exactly(int to, const void* data, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::write(to, static_cast<const char*>(data) + done, size - done);
    if (count <= 0) ::_exit(1);
    done += static_cast<std::size_t>(count);
  }
}

class ReadingProcess {
 public:
  ReadingProcess() {
    std::atexit(
        [] { std::fprintf(stderr, "libhdf5 crashed on %lu of %lu files\n", num_crashes, num_files); });
  }

  Bytes read(const std::string& subject) {
    if (child_ <= 0) start(subject);
    ++num_files;
    write_exactly(requests_, "r", 1);
    bool ended = false;
    std::uint64_t size = 0;
    read_exactly(answers_, &size, sizeof(size), ended);
    Bytes bytes(ended ? 0 : size);
    read_exactly(answers_, bytes.data(), bytes.size(), ended);
    if (ended) ++num_crashes;
    if (ended || ++files_of_child_ == kMaxFilesOfChild) stop();
    if (ended) throw Error(ExitCode::bad_data, subject + ": the library that reads it crashed");
    MessageReader answer(bytes);
    const auto code = answer.get<ExitCode>();
    if (code == ExitCode::ok) return answer.get_all<Bytes>();
    throw Error(code, answer.get_all<std::string>());
  }

 private:
  void start(const std::string& subject) {
    std::array<int, 2> requests = {}, answers = {};
    if (::pipe(requests.data()) != 0 || ::pipe(answers.data()) != 0) std::abort();
    child_ = ::fork();
    if (child_ < 0) std::abort();
    if (child_ == 0) {
      ::close(requests[1]);
      ::close(answers[0]);
      serve(requests[0], answers[1], subject);
    }
    ::close(requests[0]);
    ::close(answers[1]);
    requests_ = requests[1];
    answers_ = answers[0];
    files_of_child_ = 0;
  }

  void stop() {
    ::close(requests_);
    ::close(answers_);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }

  [[noreturn]] static void serve(int requests, int answers, const std::string& subject) {
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGTERM, SIGINT}) {
      ::signal(number, SIG_DFL);
    }
    if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(1);  // of crashes there will be many
    for (char request = 0; ::read(requests, &request, 1) == 1;) {
      ::alarm(kMaxSeconds);
      MessageWriter answer;
      try {
        const Bytes content = pack_content(load_hdf5(fuzz::input_file().path(), subject));
        answer.put(ExitCode::ok);
        answer.put_all(content);
      } catch (const Error& error) {
        answer.put(error.code());
        answer.put_all(std::string_view(error.what()));
      } catch (const std::exception& exception) {
        answer.put(ExitCode::bad_data);
        answer.put_all(std::string_view(exception.what()));
      }
      const Bytes bytes = answer.take();
      const std::uint64_t size = bytes.size();
      write_exactly(answers, &size, sizeof(size));
      write_exactly(answers, bytes.data(), bytes.size());
    }
    ::_exit(0);
  }

  static inline unsigned long num_files = 0;
  static inline unsigned long num_crashes = 0;
  pid_t child_ = -1;
  int requests_ = -1;
  int answers_ = -1;
  int files_of_child_ = 0;
};

}  // namespace

Bytes in_child_process(const std::string& subject, const ChildLimits&, const std::function<Bytes()>&) {
  static ReadingProcess process;
  return process.read(subject);
}

}  // namespace rondo

// Names of functions would take a second for each crash of the child, and the callers of each allocation most
// of the time of a target.
extern "C" const char* __asan_default_options() {
  return "symbolize=0:detect_leaks=0:malloc_context_size=1:quarantine_size_mb=16";
}
