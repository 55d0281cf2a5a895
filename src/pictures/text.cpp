#include "text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace rondo::pictures {

std::string printable(std::string_view text) {
  using Json = nlohmann::json;
  const std::string valid =
      Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
  std::string result;
  for (const char c : valid) {
    const auto code = static_cast<unsigned char>(c);
    result += code < 0x20 || code == 0x7f ? '?' : c;
  }
  return result;
}

std::string markup(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string node_label(const Topology& topology, NodeId node) {
  const std::string& name = topology.node(node).name;
  if (!name.empty()) return printable(name);
  if (topology.is_gpu(node)) return fmt::format("gpu {}", topology.gpu_of(node).value);
  return fmt::format("switch {}", node.value);
}

std::string link_label(const Topology& topology, LinkId link) {
  return node_label(topology, topology.link(link).src) + " → " +
         node_label(topology, topology.link(link).dst);
}

std::string short_number(double value) {
  return fmt::format("{:.7g}", value);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string count_of(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace rondo::pictures
