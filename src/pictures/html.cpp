#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fabric.hpp"
#include "page_files.hpp"
#include "places.hpp"
#include "rondo/core/version.hpp"
#include "rondo/pictures/pictures.hpp"
#include "text.hpp"
#include "words.hpp"

namespace rondo {

using namespace pictures;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRows = 160;
constexpr std::size_t kBins = 512;
constexpr std::size_t kMostPageBytes = 4'600'000;
constexpr std::size_t kBytesASend =
    (5 * 4 + 4) * 4 / 3 + 1;  // five columns of 4 bytes and three small ones in base64
constexpr std::size_t kBytesAChunk = 5 * 4 * 4 / 3 + 1;

/// Base64 (RFC 4648, section 4) of the values' bytes, little-endian.
template <class T>
std::string base64(const std::vector<T>& values) {
  static_assert(std::endian::native == std::endian::little && sizeof(T) <= 4);
  constexpr const char* kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned char> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string text;
  text.reserve(bytes.size() / 3 * 4 + 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? bytes[i + k] : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? kLetters[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

/// base64 of one value an element, as `T`.
template <class T, class Elements, class Value>
std::string column(const Elements& elements, const Value& value) {
  std::vector<T> values;
  values.reserve(elements.size());
  for (const auto& element : elements) values.push_back(static_cast<T>(value(element)));
  return base64(values);
}

Json links_json(const Topology& topology, const std::vector<LinkLoad>& loads, const TopologyDrawing& fabric) {
  const auto& links = topology.links();
  std::vector<std::int32_t> drawn(links.size(), -1);
  for (std::size_t d = 0; d < fabric.links.size(); ++d) {
    for (const LinkId l : fabric.links[d].links) drawn[l.index()] = static_cast<std::int32_t>(d);
  }
  return {{"src", column<std::uint32_t>(links, [](const Link& l) { return l.src.value; })},
          {"dst", column<std::uint32_t>(links, [](const Link& l) { return l.dst.value; })},
          {"gbps", column<float>(links, [](const Link& l) { return l.bandwidth_GBps; })},
          {"latency", column<float>(links, [](const Link& l) { return l.latency_us; })},
          {"bytes", column<float>(loads, [](const LinkLoad& l) { return l.bytes; })},
          {"busy", column<float>(loads, [](const LinkLoad& l) { return l.busy_us; })},
          {"sends", column<std::uint32_t>(loads, [](const LinkLoad& l) { return l.sends; })},
          {"drawn", base64(drawn)}};
}

Json rows_json(const std::vector<Row>& rows) {
  Json json = Json::array();
  for (const Row& row : rows) {
    Json links = Json::array();
    for (const LinkId l : row.links) links.push_back(l.value);
    json.push_back(Json::array({row.label, std::move(links)}));
  }
  return json;
}

/// The chunks that fit with all their sends: all of them, or every n-th.
std::vector<ChunkId> chunks_that_fit(const ProvenSchedule& proven, std::size_t most_bytes) {
  std::vector<std::size_t> bytes(proven.demand.num_chunks(), kBytesAChunk);
  for (const Send& send : proven.schedule.sends) bytes[send.chunk.index()] += kBytesASend;
  const std::size_t all = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
  const std::size_t step = (all + most_bytes - 1) / std::max<std::size_t>(1, most_bytes);
  std::vector<ChunkId> chosen;
  std::size_t sum = 0;
  for (std::size_t c = 0; c < bytes.size() && sum + bytes[c] <= most_bytes;
       c += std::max<std::size_t>(1, step)) {
    chosen.push_back(ChunkId(c));
    sum += bytes[c];
  }
  return chosen;
}

void add_sends(const ProvenSchedule& proven, std::size_t most_bytes, Json& json) {
  const std::vector<ChunkId> chosen = chunks_that_fit(proven, most_bytes);
  std::vector<std::int32_t> index(proven.demand.num_chunks(), -1);
  for (std::size_t i = 0; i < chosen.size(); ++i) index[chosen[i].index()] = static_cast<std::int32_t>(i);
  const SumFacts sums = sum_facts(proven);
  const std::vector<double> shares = link_shares(proven);
  std::vector<Send> kept;
  std::vector<std::size_t> kept_ids;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const Send& send = proven.schedule.sends[s];
    if (index[send.chunk.index()] < 0) continue;
    kept.push_back(send);
    kept_ids.push_back(s);
  }
  json["chunks"] = {
      {"total", proven.demand.num_chunks()},
      {"id", column<std::uint32_t>(chosen, [](ChunkId c) { return c.value; })},
      {"origin", column<std::uint32_t>(chosen, [&](ChunkId c) { return sums.complete[c.index()].value; })},
      {"wanted",
       column<std::uint32_t>(chosen, [&](ChunkId c) { return proven.demand.destinations(c).size(); })},
      {"bytes", column<float>(chosen, [&](ChunkId c) { return proven.demand.bytes(c); })}};
  json["sends"] = {
      {"complete", kept.size() == proven.schedule.sends.size()},
      {"link", column<std::uint32_t>(kept, [](const Send& s) { return s.link.value; })},
      {"chunk", column<std::uint32_t>(kept, [&](const Send& s) { return index[s.chunk.index()]; })},
      {"start", column<float>(kept, [](const Send& s) { return s.start_us; })},
      {"end", column<float>(kept, [](const Send& s) { return s.end_us; })},
      {"arrival", column<float>(kept, [](const Send& s) { return s.arrival_us; })}};
  // Columns that say nothing are left out.
  if (std::ranges::any_of(shares, [](double share) { return share < 1; })) {
    json["sends"]["share"] = column<std::uint8_t>(
        kept_ids, [&](std::size_t s) { return std::max(1.0, std::round(255 * shares[s])); });
  }
  if (!proven.demand.has_several_sources()) return;
  json["sends"]["adds"] = column<std::uint8_t>(kept_ids, [&](std::size_t s) { return sums.adds[s]; });
  json["sends"]["sources"] =
      column<std::uint16_t>(kept_ids, [&](std::size_t s) { return std::min(sums.sources[s], 65'535); });
  json["chunks"]["sources"] = column<std::uint32_t>(chosen, [&](ChunkId c) {
    const Contribution& contribution = proven.demand.contribution(c);
    return contribution.reduce ? contribution.sources.size() : 1;
  });
}

/// JSON that may stand inside a script element.
std::string embedded(const Json& json) {
  std::string text;
  for (const char c : json.dump()) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

void fill(std::string& page, const std::string& slot, const std::string& text) {
  for (std::size_t at = 0; (at = page.find("<!--" + slot + "-->", at)) != std::string::npos;
       at += text.size()) {
    page.replace(at, slot.size() + 7, text);
  }
}

std::string bound_section(const ProvenSchedule& proven) {
  if (!proven.lower_bound) return "<h2 id=\"bound-title\">Lower bound</h2><p>None is known.</p>";
  return fmt::format(
      "<h2 id=\"bound-title\">Why no schedule ends before {} us</h2><p>{}</p><p>The certificate is a {}; "
      "<code>rondo verify</code> checks it by arithmetic alone.</p>",
      short_number(proven.lower_bound->us), markup(certificate_words(proven)),
      certificate_kind(proven.lower_bound->certificate));
}

std::string timeline_words(const ProvenSchedule& proven, const std::vector<Row>& rows,
                           const std::vector<RoundSpan>& rounds, bool complete) {
  std::string text =
      rows.size() == proven.topology.num_links()
          ? fmt::format(
                "A row a link; a send has the colour of {}, and where sends are too short to be seen, the "
                "colour tells how busy the link is.",
                proven.demand.has_several_sources()
                    ? "the GPU that has its sum whole first (pale where it is added)"
                    : "its chunk's origin")
          : fmt::format("A row stands for several of the {} links; its colour tells how busy they are.",
                        proven.topology.num_links());
  if (std::ranges::any_of(link_shares(proven), [](double share) { return share < 1; }))
    text +=
        " What takes a share of a link is as high as its share, and stands on what else the link carries.";
  if (!complete) {
    text += fmt::format(
        " Of {} sends those of some chunks are in this page one by one, the others in the colours only.",
        proven.schedule.sends.size());
  }
  if (!rounds.empty()) text += " The small marks at the top are the ends of rounds.";
  text += " The black line is the finish";
  return text + (proven.lower_bound ? ", the dashed red one the lower bound." : ".");
}

std::string fabric_words(const TopologyDrawing& fabric) {
  if (fabric.nodes.empty()) return "There are too many nodes to draw; the table below has all links.";
  std::string text =
      "The wider a link, the more bytes it carries; the darker, the longer it is busy. Each direction bends "
      "to its right.";
  if (fabric.links.size() > kMostDrawnLinks) {
    text += fmt::format(" The {} that carry most of {} are drawn.", kMostDrawnLinks, fabric.links.size());
  }
  return text + " The table below has the same in figures.";
}

}  // namespace

std::string html_page(const PictureSubject& subject) {
  const ProvenSchedule& proven = subject.proven;
  const Topology& topology = proven.topology;
  const auto loads = link_loads(proven);
  const double end_us = axis_end_us(proven);
  const Places places = places_of(topology);
  const TopologyDrawing fabric = draw_fabric(topology, places);
  const auto rows = timeline_rows(topology, places, kMostRows);
  const auto shares =
      busy_shares(proven, row_of_links(rows, topology.num_links()), rows.size(), kBins, end_us);

  Json data = {
      {"finish_us", proven.schedule.finish_us},
      {"bound_us", proven.lower_bound ? Json(proven.lower_bound->us) : Json(nullptr)},
      {"end_us", end_us},
      {"nodes", Json::array()},
      {"rounds", Json::array()},
      {"colours", Json::array()},
      {"links", links_json(topology, loads, fabric)},
      {"rows", rows_json(rows)},
      {"bins",
       {{"count", kBins}, {"shares", column<std::uint8_t>(shares, [](float s) { return 255 * s + 0.5F; })}}}};
  for (std::size_t n = 0; n < topology.num_nodes(); ++n)
    data["nodes"].push_back(node_label(topology, NodeId(n)));
  for (const RoundSpan& round : subject.rounds) data["rounds"].push_back({round.begin_us, round.end_us});
  for (int step = 0; step < kColourSteps; ++step) {
    data["colours"].push_back(utilisation_colour(static_cast<double>(step) / (kColourSteps - 1)));
  }

  std::string page = kPageHtml;
  fill(page, "title", markup(title_words(proven)));
  fill(page, "style", kPageStyle);
  fill(page, "result", markup(result_words(proven)));
  fill(page, "bound", bound_section(proven));
  fill(page, "fabric-words", fabric_words(fabric));
  fill(page, "fabric",
       fabric.nodes.empty()
           ? ""
           : fmt::format("<svg role=\"img\" aria-label=\"The fabric with the load of its "
                         "links\" viewBox=\"0 0 {0} {1}\" style=\"max-width:{2}px\" "
                         "font-family=\"Helvetica, Arial, sans-serif\">\n{3}</svg>",
                         coordinate(fabric.width), coordinate(fabric.height), coordinate(1.6 * fabric.width),
                         fabric_svg(fabric, paint_of(loads, end_us))));
  fill(page, "producer", markup(proven.producer.empty() ? producer() : proven.producer));
  fill(page, "script", kPageScript);

  const std::size_t taken = page.size() + data.dump().size();
  add_sends(proven, kMostPageBytes - std::min(taken, kMostPageBytes), data);
  fill(page, "timeline", timeline_words(proven, rows, subject.rounds, data["sends"]["complete"].get<bool>()));
  fill(page, "data", embedded(data));
  return page;
}

}  // namespace rondo
