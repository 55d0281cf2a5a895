#include "outcome.hpp"

#include <cassert>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>

namespace rondo {

Outcome run_guarded(const std::function<Bytes()>& work) {
  try {
    return {.value = work()};
  } catch (const Error& error) {
    return {.error = error};
  } catch (const std::exception& exception) {
    return {.error = Error(ExitCode::internal, std::string("unexpected exception: ") + exception.what())};
  } catch (...) {
    return {.error = Error(ExitCode::internal, "unexpected exception of unknown type")};
  }
}

// An outcome is the exit code (0: no error), a length, and the value or the message.
void MessageWriter::put_outcome(const Outcome& outcome) {
  const Bytes text = outcome.error ? to_bytes(outcome.error->what()) : outcome.value;
  put(static_cast<std::int32_t>(outcome.error ? outcome.error->code() : ExitCode::ok));
  put(static_cast<std::uint64_t>(text.size()));
  append(text.data(), text.size());
}

Outcome MessageReader::get_outcome() {
  const auto code = static_cast<ExitCode>(get<std::int32_t>());
  Bytes text(get<std::uint64_t>());
  copy_out(text.data(), text.size());
  if (code == ExitCode::ok) return {.value = std::move(text)};
  return {.error = Error(code, to_text(text))};
}

void MessageWriter::append(const void* data, std::size_t size) {
  const auto* first = static_cast<const std::byte*>(data);
  bytes_.insert(bytes_.end(), first, first + size);
}

void MessageReader::copy_out(void* data, std::size_t size) {
  assert(size <= bytes_.size() - at_);
  if (size > 0) std::memcpy(data, bytes_.data() + at_, size);
  at_ += size;
}

Bytes to_bytes(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(first, first + text.size());
}

std::string to_text(const Bytes& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace rondo
