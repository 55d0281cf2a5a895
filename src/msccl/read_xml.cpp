#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <pugixml.hpp>

#include "names.hpp"
#include "rondo/core/error.hpp"
#include "rondo/msccl/xml.hpp"

namespace rondo::msccl {
namespace {

/// Ids beyond this are refused before anything of their size is made.
constexpr int kMaxGpus = 65'536;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(ExitCode::bad_data, where + ": " + what);
}

/// The attributes of one element; `where` names it in messages.
class Attributes {
 public:
  Attributes(const pugi::xml_node& node, std::string where) : node_(node), where_(std::move(where)) {}

  const std::string& where() const { return where_; }

  std::optional<std::string_view> find(const char* name) const {
    const pugi::xml_attribute attribute = node_.attribute(name);
    if (!attribute) return std::nullopt;
    return attribute.value();
  }

  std::string_view text(const char* name, const char* why = "") const {
    const auto value = find(name);
    if (!value) refuse(where_, fmt::format("<{}> has no attribute {}{}", node_.name(), name, why));
    return *value;
  }

  template <class Integer = int>
  Integer integer(const char* name, Integer least, const char* why = "") const {
    const std::string_view value = text(name, why);
    Integer number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) {
      refuse(where_, fmt::format("{} is '{}', but has to be a whole number", name, value));
    }
    if (number < least) {
      refuse(where_, fmt::format("{} is {}, but has to be at least {}", name, number, least));
    }
    return number;
  }

  bool flag(const char* name, const char* why = "") const {
    const int value = integer<int>(name, 0, why);
    if (value > 1) refuse(where_, fmt::format("{} is {}, but has to be 0 or 1", name, value));
    return value == 1;
  }

  template <class Value, std::size_t N>
  Value one_of(const char* name, const Names<Value, N>& names) const {
    const std::string_view value = text(name);
    const auto known = value_of(value, names);
    if (!known) refuse(where_, fmt::format("{} is '{}'; known are: {}", name, value, list_of(names)));
    return *known;
  }

 private:
  const pugi::xml_node& node_;
  std::string where_;
};

/// The children, which all have to be <name>.
std::vector<pugi::xml_node> children(const pugi::xml_node& node, const std::string& where, const char* name) {
  std::vector<pugi::xml_node> all;
  for (const pugi::xml_node& child : node.children()) {
    if (child.type() != pugi::node_element) {
      refuse(where, fmt::format("there is text in <{}>, which holds elements only", node.name()));
    }
    if (std::string_view(child.name()) != name) {
      refuse(where, fmt::format("<{}> in <{}>, where only <{}> may be", child.name(), node.name(), name));
    }
    all.push_back(child);
  }
  return all;
}

/// Puts the elements in the order of their ids, which have to be 0..n-1.
void sort_by_id(std::vector<pugi::xml_node>& nodes, const std::string& where, const char* what) {
  std::vector<pugi::xml_node> sorted(nodes.size());
  for (const pugi::xml_node& node : nodes) {
    const int id = Attributes(node, where).integer<int>("id", 0);
    if (static_cast<std::size_t>(id) >= nodes.size()) {
      refuse(where, fmt::format("{} id {}, but there are {}: ids have to be 0 to {}", what, id, nodes.size(),
                                nodes.size() - 1));
    }
    if (sorted[static_cast<std::size_t>(id)]) refuse(where, fmt::format("{} id {} stands twice", what, id));
    sorted[static_cast<std::size_t>(id)] = node;
  }
  nodes = std::move(sorted);
}

Collective read_collective(const std::string& spelling) {
  if (const auto known = find_collective(spelling)) return *known;
  std::string names;
  for (const CollectiveRow& row : collective_rows()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  refuse("algo", fmt::format("coll is '{}'; known are: {}", spelling, names));
}

Range read_range(const Attributes& attributes, const char* buffer, const char* offset) {
  return {.buffer = attributes.one_of(buffer, kBufferNames), .offset = attributes.integer<int>(offset, -1)};
}

Step read_step(const Attributes& attributes) {
  Step step;
  step.type = attributes.one_of("type", kStepNames);
  step.src = read_range(attributes, "srcbuf", "srcoff");
  step.dst = read_range(attributes, "dstbuf", "dstoff");
  step.count = attributes.integer<int>("cnt", 0);
  const Dependency dependency = {.tb = attributes.integer<int>("depid", -1),
                                 .step = attributes.integer<int>("deps", -1)};
  if ((dependency.tb < 0) != (dependency.step < 0)) {
    refuse(attributes.where(), fmt::format("depid is {} and deps is {}; both or neither have to be -1",
                                           dependency.tb, dependency.step));
  }
  if (dependency.tb >= 0) step.dependency = dependency;
  step.has_dependents = attributes.flag("hasdep");
  return step;
}

ThreadBlock read_tb(const pugi::xml_node& node, int gpu, int id) {
  const Attributes attributes(node, place(gpu, id));
  ThreadBlock tb;
  tb.send_peer = attributes.integer<int>("send", -1);
  tb.recv_peer = attributes.integer<int>("recv", -1);
  tb.channel = attributes.integer<int>("chan", -1);
  for (const pugi::xml_node& child : children(node, attributes.where(), "step")) {
    const int expected = static_cast<int>(tb.steps.size());
    const Attributes step(child, place(gpu, id, expected));
    if (const int s = step.integer<int>("s", 0); s != expected) {
      refuse(step.where(), fmt::format("s is {}; steps are numbered 0, 1, 2... as they stand", s));
    }
    tb.steps.push_back(read_step(step));
  }
  return tb;
}

Gpu read_gpu(const pugi::xml_node& node, int id) {
  const Attributes attributes(node, place(id));
  Gpu gpu;
  gpu.input_chunks = attributes.integer<int>("i_chunks", 0);
  gpu.output_chunks = attributes.integer<int>("o_chunks", 0);
  gpu.scratch_chunks = attributes.integer<int>("s_chunks", 0);
  std::vector<pugi::xml_node> tbs = children(node, attributes.where(), "tb");
  sort_by_id(tbs, attributes.where(), "tb");
  for (std::size_t t = 0; t < tbs.size(); ++t) gpu.tbs.push_back(read_tb(tbs[t], id, static_cast<int>(t)));
  return gpu;
}

Program read_program(const pugi::xml_node& node) {
  const Attributes attributes(node, "algo");
  const char* const ignored = "; executors pass over a file without it and say nothing";
  Program program;
  program.name = attributes.text("name");
  program.protocol = attributes.one_of("proto", kProtocolNames);
  program.coll_spelling = attributes.text("coll");
  program.coll = read_collective(program.coll_spelling);
  program.num_channels = attributes.integer<int>("nchannels", 1);
  program.chunks_per_loop = attributes.integer<int>("nchunksperloop", 1);
  program.in_place = attributes.flag("inplace", ignored);
  program.out_of_place = attributes.flag("outofplace", ignored);
  program.min_bytes = attributes.integer<std::int64_t>("minBytes", 0, ignored);
  program.max_bytes = attributes.integer<std::int64_t>("maxBytes", 0, ignored);
  if (const auto redop = attributes.find("redop")) program.redop = *redop;
  if (attributes.find("nthreads")) program.num_threads = attributes.integer<int>("nthreads", 1);

  const int num_gpus = attributes.integer<int>("ngpus", 1);
  if (num_gpus > kMaxGpus) {
    throw Error(ExitCode::unavailable, fmt::format("algo: ngpus is {}, more than {}", num_gpus, kMaxGpus));
  }
  std::vector<pugi::xml_node> gpus = children(node, "algo", "gpu");
  if (gpus.size() != static_cast<std::size_t>(num_gpus)) {
    refuse("algo", fmt::format("ngpus is {}, but there are {} <gpu>", num_gpus, gpus.size()));
  }
  sort_by_id(gpus, "algo", "gpu");
  for (std::size_t g = 0; g < gpus.size(); ++g)
    program.gpus.push_back(read_gpu(gpus[g], static_cast<int>(g)));
  return program;
}

}  // namespace

Program parse_xml(std::string_view text, const XmlLimits& limits) {
  if (text.size() > limits.bytes) {
    throw Error(ExitCode::unavailable,
                fmt::format("the XML has {} bytes, more than {}", text.size(), limits.bytes));
  }
  // Elements are counted before the tree is built: a small file may hold a very large tree.
  const auto tags = static_cast<std::size_t>(std::count(text.begin(), text.end(), '<'));
  if (tags > 2 * limits.elements) {
    throw Error(ExitCode::unavailable,
                fmt::format("the XML has {} tags, more than {}", tags, 2 * limits.elements));
  }
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(
      text.data(), text.size(), pugi::parse_minimal | pugi::parse_escapes, pugi::encoding_utf8);
  if (!parsed) {
    const auto end = text.begin() + std::min<std::ptrdiff_t>(parsed.offset, std::ssize(text));
    refuse(fmt::format("line {}", 1 + std::count(text.begin(), end, '\n')),
           fmt::format("not well-formed XML: {}", parsed.description()));
  }
  const pugi::xml_node root = document.document_element();
  if (std::string_view(root.name()) != "algo") {
    refuse("the XML", fmt::format("the outermost element is <{}>, not <algo>", root.name()));
  }
  if (root.next_sibling() || root.previous_sibling()) refuse("the XML", "more than one outermost element");
  return read_program(root);
}

}  // namespace rondo::msccl
