// Loaded before the C library (LD_PRELOAD). Notes in the file RONDO_RECORD what a power cut depends on, a
// line a call: "write PATH", "fsync PATH", "rename FROM TO", "mkdir PATH". Of writes those to temporary files
// alone.
//
// And stops the program at a file, however fast the machine is: once a file NAME-NUMBER of at least BYTES has
// got its name, with a NUMBER of at least that of RONDO_STOP_AT="NAME NUMBER BYTES SIGNAL WHOM", the program
// gets the signal; WHOM is "self", or "mpirun", which passes it on to all ranks.

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void note(const char* call, const char* first, const char* second = "") {
  const char* record = std::getenv("RONDO_RECORD");
  if (record == nullptr) return;
  char line[2 * PATH_MAX + 16];
  const int length = std::snprintf(line, sizeof line, "%s %s%s%s\n", call, first, *second ? " " : "", second);
  const auto file =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, record, O_WRONLY | O_CREAT | O_APPEND, 0644));
  if (file < 0) return;
  syscall(SYS_write, file, line, static_cast<size_t>(length));
  syscall(SYS_close, file);
}

void note_file(const char* call, int file, const char* only_with = "") {
  char link[64];
  char path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  if (std::strstr(path, only_with) != nullptr) note(call, path);
}

void stop_at(const char* path) {
  static bool is_stopped = false;
  const char* where = std::getenv("RONDO_STOP_AT");
  if (where == nullptr || is_stopped) return;
  char name[256], whom[16];
  long number = 0, bytes = 0;
  int signal_number = 0;
  if (std::sscanf(where, "%255s %ld %ld %d %15s", name, &number, &bytes, &signal_number, whom) != 5) return;
  const char* slash = std::strrchr(path, '/');
  const char* file = slash == nullptr ? path : slash + 1;
  const size_t length = std::strlen(name);
  struct stat status;
  if (std::strncmp(file, name, length) != 0 || file[length] != '-' ||
      std::strtol(file + length + 1, nullptr, 10) < number || stat(path, &status) != 0 ||
      status.st_size < bytes) {
    return;
  }
  is_stopped = true;
  const bool is_self = std::strcmp(whom, "self") == 0;
  kill(is_self ? getpid() : getppid(), signal_number);
  if (!is_self) usleep(1'000'000);  // the signal comes back by way of mpirun; ends early when it does
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, size_t size) {
  note_file("write", file, ".rondo-");
  return syscall(SYS_write, file, data, size);
}

ssize_t pwrite(int file, const void* data, size_t size, off_t offset) {
  note_file("write", file, ".rondo-");
  return syscall(SYS_pwrite64, file, data, size, offset);
}

ssize_t pwrite64(int file, const void* data, size_t size, off64_t offset) {
  return pwrite(file, data, size, offset);
}

int fsync(int file) {
  const auto result = static_cast<int>(syscall(SYS_fsync, file));
  if (result == 0) note_file("fsync", file);
  return result;
}

int rename(const char* from, const char* to) noexcept {
  const auto result = static_cast<int>(syscall(SYS_rename, from, to));
  if (result == 0) {
    note("rename", from, to);
    stop_at(to);
  }
  return result;
}

int mkdir(const char* path, mode_t mode) noexcept {
  const auto result = static_cast<int>(syscall(SYS_mkdir, path, mode));
  if (result == 0) note("mkdir", path);
  return result;
}
}
