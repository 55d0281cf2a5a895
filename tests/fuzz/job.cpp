#include "accept_or_refuse.hpp"
#include "settings.hpp"

/// A job file (--config): every reader of a value on whatever it sets, and --print-config of it read again.
RONDO_FUZZ_TARGET(job)(const std::uint8_t* data, std::size_t size) {
  using namespace rondo;
  using namespace rondo::cli;
  static const std::vector<OptionGroup> groups = {{"Job",
                                                   {{"topology", "FILE", "", "a text"},
                                                    {"size", "SIZE", "1MB", "a text"},
                                                    {"chunks", "N", "4", "a number"},
                                                    {"seed", "N", "0", "a seed"},
                                                    {"gap", "G", "", "a fraction"},
                                                    {"time-limit", "S", "", "a positive number"},
                                                    {"force", "", "", "a flag"}}},
                                                  common_options()};
  const std::string text = fuzz::to_string(data, size);
  fuzz::accept_or_refuse([&] {
    const auto read = [&](const std::string& config) {
      return parse_settings(groups, "", {"--config", "job.cfg"}, [&](const std::string&) { return config; });
    };
    const Settings settings = read(text);
    settings.has("force");
    const std::string config = settings.to_config();
    if (read(config).to_config() != config) std::abort();
    settings.integer("chunks", 1, 1 << 20);
    settings.seed("seed");
    if (settings.has("gap")) settings.fraction("gap");
    if (settings.has("time-limit")) settings.positive("time-limit");
  });
  return 0;
}
