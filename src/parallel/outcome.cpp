#include "outcome.hpp"

#include <cstdint>
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

// The exit code (0: no error), and the value or the message.
void put_outcome(MessageWriter& message, const Outcome& outcome) {
  message.put(static_cast<std::int32_t>(outcome.error ? outcome.error->code() : ExitCode::ok));
  message.put_all(outcome.error ? to_bytes(outcome.error->what()) : outcome.value);
}

Outcome get_outcome(MessageReader& message) {
  const auto code = static_cast<ExitCode>(message.get<std::int32_t>());
  Bytes text = message.get_all<Bytes>();
  if (code == ExitCode::ok) return {.value = std::move(text)};
  return {.error = Error(code, to_text(text))};
}

Bytes to_bytes(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(first, first + text.size());
}

std::string to_text(const Bytes& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace rondo
