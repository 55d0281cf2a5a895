#include "rondo/parallel/work_log.hpp"

#include <utility>

#include "rondo/core/error.hpp"
#include "rondo/parallel/metered_communicator.hpp"

namespace rondo {

RecordingCommunicator::RecordingCommunicator(const Communicator& inner) : inner_(inner) {
  if (inner.size() != 1) throw Error(ExitCode::internal, "work is recorded on one rank; there are more");
}

double RecordingCommunicator::take_own_cpu_s() const {
  return std::exchange(since_, CpuStopwatch()).seconds();
}

void RecordingCommunicator::add(WorkStep::Talk talk, std::size_t bytes) const {
  steps_.push_back({.own_cpu_s = take_own_cpu_s(), .talk = talk, .bytes = bytes});
}

void RecordingCommunicator::add_parts(double own_cpu_s, std::vector<WorkStep::Part> parts) const {
  steps_.push_back({.own_cpu_s = own_cpu_s, .parts = std::move(parts)});
  since_ = {};
}

std::vector<WorkStep> RecordingCommunicator::steps() const {
  std::vector<WorkStep> all = steps_;
  all.push_back({.own_cpu_s = since_.seconds()});
  return all;
}

void RecordingCommunicator::barrier() const {
  inner_.barrier();
  add(WorkStep::Talk::reduce, 0);
}

Bytes RecordingCommunicator::broadcast(Bytes bytes, int root) const {
  Bytes heard = inner_.broadcast(std::move(bytes), root);
  add(WorkStep::Talk::broadcast, heard.size());
  return heard;
}

std::vector<Bytes> RecordingCommunicator::all_gather(const Bytes& bytes) const {
  std::vector<Bytes> heard = inner_.all_gather(bytes);
  add(WorkStep::Talk::gather, bytes.size());
  return heard;
}

double RecordingCommunicator::max(double value) const {
  add(WorkStep::Talk::reduce, sizeof value);
  return inner_.max(value);
}

double RecordingCommunicator::sum(double value) const {
  add(WorkStep::Talk::reduce, sizeof value);
  return inner_.sum(value);
}

std::vector<double> RecordingCommunicator::sum(std::vector<double> values) const {
  add(WorkStep::Talk::reduce, values.size() * sizeof(double));
  return inner_.sum(std::move(values));
}

const RecordingCommunicator* recording(const Communicator& communicator) {
  if (const auto* metered = dynamic_cast<const MeteredCommunicator*>(&communicator))
    return recording(metered->inner());
  return dynamic_cast<const RecordingCommunicator*>(&communicator);
}

void log_even_parts(const Communicator& communicator, std::size_t count) {
  const RecordingCommunicator* log = recording(communicator);
  if (!log) return;
  const double cpu_s = log->take_own_cpu_s() / static_cast<double>(count);
  log->add_parts(0, {{.estimate = 1, .cpu_s = cpu_s, .count = count}});
}

}  // namespace rondo
