#include "send_writer.hpp"

#include <algorithm>

namespace rondo {
namespace {

Hdf5ColumnAppender integers(const Hdf5GroupWriter& group, const char* name, std::size_t count) {
  return group.create_column(name, count, H5T_STD_I32LE, H5T_NATIVE_INT32, "");
}

Hdf5ColumnAppender numbers(const Hdf5GroupWriter& group, const char* name, std::size_t count,
                           const char* units) {
  return group.create_column(name, count, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, units);
}

}  // namespace

SendWriter::SendWriter(const Hdf5GroupWriter& group, std::size_t num_sends, SendOptions options)
    : chunk_(integers(group, "chunk", num_sends)),
      link_(integers(group, "link", num_sends)),
      start_us_(numbers(group, "start_us", num_sends, "us")),
      end_us_(numbers(group, "end_us", num_sends, "us")),
      arrival_us_(numbers(group, "arrival_us", num_sends, "us")),
      op_(group.create_column("op", num_sends, H5T_STD_U8LE, H5T_NATIVE_UINT8, "")) {
  if (options.transfers) transfer_.push_back(integers(group, "transfer", num_sends));
  if (options.rates) rate_GBps_.push_back(numbers(group, "rate_GBps", num_sends, "GB/s"));
  left_.reserve(std::min(num_sends, kHdf5Piece));  // grown little by little, it would be there twice
}

void SendWriter::add(std::span<const Send> sends) {
  while (!sends.empty()) {
    if (left_.empty() && sends.size() >= kHdf5Piece) {
      write_piece(sends.first(kHdf5Piece));
      sends = sends.subspan(kHdf5Piece);
      continue;
    }
    const std::size_t count = std::min(sends.size(), kHdf5Piece - left_.size());
    left_.insert(left_.end(), sends.begin(), sends.begin() + static_cast<std::ptrdiff_t>(count));
    sends = sends.subspan(count);
    if (left_.size() == kHdf5Piece) finish();
  }
}

void SendWriter::finish() {
  write_piece(left_);
  left_.clear();
}

template <class Value, class Of>
void SendWriter::append(Hdf5ColumnAppender& column, std::span<const Send> sends, Of of) {
  std::vector<Value> values;
  values.reserve(sends.size());
  for (const Send& send : sends) values.push_back(of(send));
  column.append(values.data(), values.size());
}

void SendWriter::write_piece(std::span<const Send> sends) {
  append<std::int32_t>(chunk_, sends, [](const Send& s) { return s.chunk.value; });
  append<std::int32_t>(link_, sends, [](const Send& s) { return s.link.value; });
  append<double>(start_us_, sends, [](const Send& s) { return s.start_us; });
  append<double>(end_us_, sends, [](const Send& s) { return s.end_us; });
  append<double>(arrival_us_, sends, [](const Send& s) { return s.arrival_us; });
  append<std::uint8_t>(op_, sends, [](const Send& s) { return static_cast<std::uint8_t>(s.op); });
  for (Hdf5ColumnAppender& column : transfer_)
    append<std::int32_t>(column, sends, [](const Send& s) { return s.transfer; });
  for (Hdf5ColumnAppender& column : rate_GBps_)
    append<double>(column, sends, [](const Send& s) { return s.rate_GBps; });
}

}  // namespace rondo
