#include <fmt/format.h>

#include <pugixml.hpp>

#include "rondo/msccl/xml.hpp"

namespace rondo::msccl {
namespace {

/// Sets attributes in the order of the calls.
class Element {
 public:
  explicit Element(const pugi::xml_node& node) : node_(node) {}

  template <class Number>
  Element& set(const char* name, Number value) requires std::is_arithmetic_v<Number> {
    node_.append_attribute(name).set_value(value);
    return *this;
  }
  Element& set(const char* name, std::string_view value) {
    node_.append_attribute(name).set_value(std::string(value).c_str());
    return *this;
  }
  Element& flag(const char* name, bool value) { return set(name, value ? 1 : 0); }
  Element child(const char* name) { return Element(node_.append_child(name)); }

 private:
  pugi::xml_node node_;
};

void write_step(Element step, int number, const Step& content) {
  const Dependency dependency = content.dependency.value_or(Dependency{});
  step.set("s", number)
      .set("type", to_string(content.type))
      .set("srcbuf", to_string(content.src.buffer))
      .set("srcoff", content.src.offset)
      .set("dstbuf", to_string(content.dst.buffer))
      .set("dstoff", content.dst.offset)
      .set("cnt", content.count)
      .set("depid", dependency.tb)
      .set("deps", dependency.step)
      .flag("hasdep", content.has_dependents);
}

void write_gpu(Element gpu, int id, const Gpu& content) {
  gpu.set("id", id)
      .set("i_chunks", content.input_chunks)
      .set("o_chunks", content.output_chunks)
      .set("s_chunks", content.scratch_chunks);
  for (int t = 0; const ThreadBlock& tb : content.tbs) {
    Element element = gpu.child("tb");
    element.set("id", t++).set("send", tb.send_peer).set("recv", tb.recv_peer).set("chan", tb.channel);
    for (int s = 0; const Step& step : tb.steps) write_step(element.child("step"), s++, step);
  }
}

struct StringWriter final : pugi::xml_writer {
  void write(const void* data, std::size_t size) override {
    text.append(static_cast<const char*>(data), size);
  }
  std::string text;
};

}  // namespace

std::string write_xml(const Program& program) {
  pugi::xml_document document;
  Element algo(document.append_child("algo"));
  algo.set("name", program.name)
      .set("proto", to_string(program.protocol))
      .set("nchannels", program.num_channels)
      .set("nchunksperloop", program.chunks_per_loop)
      .set("ngpus", program.num_gpus())
      .set("coll", program.coll_spelling)
      .flag("inplace", program.in_place)
      .flag("outofplace", program.out_of_place)
      .set("minBytes", static_cast<long long>(program.min_bytes))
      .set("maxBytes", static_cast<long long>(program.max_bytes));
  if (!program.redop.empty()) algo.set("redop", program.redop);
  if (program.num_threads) algo.set("nthreads", *program.num_threads);
  for (int g = 0; const Gpu& gpu : program.gpus) write_gpu(algo.child("gpu"), g++, gpu);
  StringWriter writer;
  document.save(writer, "  ", pugi::format_indent | pugi::format_no_declaration);
  return writer.text;
}

}  // namespace rondo::msccl
