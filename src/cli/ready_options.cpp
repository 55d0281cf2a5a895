#include "ready_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/core/error.hpp"
#include "rondo/core/numbers.hpp"
#include "rondo/io/files.hpp"

namespace rondo::cli {
namespace {

/// Beyond it differences of a thousandth of a nanosecond are lost.
constexpr double kLatestReadyUs = 3.6e9;

[[noreturn]] void refuse_ready(const std::string& why) {
  throw Error(ExitCode::usage, "--ready " + why);
}

/// "3" or "5-7".
std::pair<std::size_t, std::size_t> gpu_range(const std::string& text, std::size_t num_gpus) {
  const std::size_t dash = text.find('-');
  const auto number = [&](const std::string& digits) -> std::size_t {
    const bool is_number =
        !digits.empty() && digits.size() < 10 && digits.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number)
      refuse_ready(fmt::format("has '{}' for a GPU; write GPU:US, such as 3:250 or 5-7:100", text));
    const auto gpu = static_cast<std::size_t>(std::stoul(digits));
    if (gpu >= num_gpus) refuse_ready(fmt::format("names GPU {}; GPUs are 0 to {}", gpu, num_gpus - 1));
    return gpu;
  };
  const std::size_t first = number(text.substr(0, dash));
  return {first, dash == std::string::npos ? first : number(text.substr(dash + 1))};
}

std::string why_ready_ignored(const Settings& settings) {
  return settings.has("demand") ? "a demand's file says ready_us itself; leave it out" : "";
}

/// Lines as commas, without comments.
std::string entries_of(const std::string& value) {
  const bool is_list = value.find(':') != std::string::npos;
  if (is_list) return value;
  std::string entries;
  bool is_comment = false;
  for (const char c : read_text_file(value)) {
    if (c == '\n') {
      is_comment = false;
      entries += ',';
    } else if (c == '#') {
      is_comment = true;
    } else if (!is_comment && c != ' ' && c != '\t' && c != '\r') {
      entries += c;
    }
  }
  return entries;
}

}  // namespace

Option ready_option() {
  return {"ready", "GPU:US,...|FILE", "",
          "late GPUs: when they bring their data, such as 3:250 or 5-7:100 (default: all at 0)",
          why_ready_ignored};
}

std::vector<double> parse_ready(const std::string& value, std::size_t num_gpus) {
  std::vector<double> ready_us(num_gpus, 0);
  std::vector<char> is_named(num_gpus, 0);
  const std::string entries = entries_of(value);
  for (std::size_t at = 0; at <= entries.size();) {
    const std::size_t end = std::min(entries.find(',', at), entries.size());
    const std::string entry = entries.substr(at, end - at);
    at = end + 1;
    if (entry.empty()) continue;
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos)
      refuse_ready(fmt::format("has '{}'; write GPU:US, such as 3:250 or 5-7:100", entry));
    const auto [first, last] = gpu_range(entry.substr(0, colon), num_gpus);
    const double us = parse_number(entry.substr(colon + 1), "a time of --ready");
    if (!(us >= 0) || !std::isfinite(us))
      refuse_ready(fmt::format("has the time {} us of GPU {}; it is 0 or more", us, first));
    if (us > kLatestReadyUs) {
      refuse_ready(
          fmt::format("has the time {} us of GPU {}, beside which transfers would vanish in rounding; "
                      "it is at most {} us, an hour",
                      us, first, kLatestReadyUs));
    }
    if (last < first) refuse_ready(fmt::format("has '{}', which runs backwards", entry));
    for (std::size_t g = first; g <= last; ++g) {
      if (is_named[g]) refuse_ready(fmt::format("names GPU {} twice; name it once", g));
      is_named[g] = 1;
      ready_us[g] = us;
    }
  }
  return ready_us;
}

Demand with_ready_times(const Settings& settings, Demand demand) {
  if (!settings.has("ready")) return demand;
  const std::vector<double> ready_us = parse_ready(settings.text("ready"), demand.num_gpus());
  const std::vector<GpuId> members = demand.members();
  double latest_us = 0;
  for (std::size_t g = 0; g < ready_us.size(); ++g) {
    if (ready_us[g] == 0) continue;
    latest_us = std::max(latest_us, ready_us[g]);
    if (!std::ranges::binary_search(members, GpuId{g}))
      refuse_ready(fmt::format("names GPU {}, which is not in the group and brings nothing", g));
  }
  if (latest_us == 0) return demand;
  std::vector<Contribution> late = demand.contributions();
  double bytes = 0;
  for (Contribution& c : late) {
    bytes += c.bytes;
    const auto sources = c.all_sources();
    if (sources.size() == 1) {
      c.ready_us = ready_us[sources.front().index()];
      continue;
    }
    for (const GpuId source : sources) c.source_ready_us.push_back(ready_us[source.index()]);
  }
  CollectiveShape shape = demand.shape();
  shape.counts.clear();
  return Demand(Collective::custom, bytes, demand.num_gpus(), std::move(late), 1, std::move(shape));
}

}  // namespace rondo::cli
