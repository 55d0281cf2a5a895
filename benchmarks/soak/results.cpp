#include "results.hpp"

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

namespace rondo::soak {
namespace {

using Json = nlohmann::ordered_json;

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

bool is_largest(const std::string& outcome) {
  return outcome.starts_with("longest");
}

/// Of all pieces of a campaign together.
Json totals_of(const Json& pieces) {
  Json totals = Json::object();
  for (const Json& piece : pieces) {
    Json& total = totals[piece.at("campaign").get<std::string>()];
    if (total.is_null()) total = Json::object();
    const auto add = [&](const std::string& name, double value) {
      const double before = total.value(name, 0.0);
      total[name] = is_largest(name) ? std::max(before, value) : before + value;
    };
    for (const char* name : {"disturbances", "findings", "seconds"}) add(name, piece.at(name));
    for (const auto& [name, value] : piece.at("outcomes").items()) add(name, value);
  }
  return totals;
}

}  // namespace

void add_to_results(const fs::path& file, const std::string& name, const Campaign& campaign, int seed,
                    const Tally& tally, double seconds) {
  const Json before = fs::exists(file) ? Json::parse(text_of(file)) : Json::object();
  const std::string command = "soak " + name + " --count " + std::to_string(campaign.done) + " --seed " +
                              std::to_string(seed) +
                              (campaign.only.empty() ? "" : " --only " + campaign.only);
  Json pieces = Json::array();
  const Json none = Json::array();
  for (const Json& piece : before.contains("pieces") ? before["pieces"] : none) {
    if (piece.at("command") != command) pieces.push_back(piece);
  }
  Json outcomes = Json::object();
  for (const auto& [outcome, count] : tally.counts()) outcomes[outcome] = count;
  pieces.push_back({{"campaign", name},
                    {"command", command},
                    {"date", today()},
                    {"disturbances", campaign.done},
                    {"findings", tally.findings()},
                    {"seconds", seconds},
                    {"outcomes", outcomes}});
  const std::string text = Json({{"totals", totals_of(pieces)}, {"pieces", pieces}}).dump(1);
  std::ofstream(file) << text << "\n";
}

}  // namespace rondo::soak
