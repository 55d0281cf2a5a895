#include "outcome.hpp"
#include "rondo/parallel/communicator.hpp"

namespace rondo {

Bytes on_root(const Communicator& communicator, const std::function<Bytes()>& work) {
  MessageWriter message;
  if (communicator.is_root()) message.put_outcome(run_guarded(work));
  const Bytes received = communicator.broadcast(message.take(), 0);
  Outcome outcome = MessageReader(received).get_outcome();
  if (outcome.error) throw *outcome.error;
  return std::move(outcome.value);
}

}  // namespace rondo
