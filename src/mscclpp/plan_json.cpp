#include <fmt/format.h>

#include <algorithm>

#include "rondo/io/json_object.hpp"
#include "rondo/mscclpp/plan_files.hpp"

namespace rondo::mscclpp {
namespace {

constexpr std::array<Buffer, 3> kBuffers = {Buffer::input, Buffer::output, Buffer::scratch};

std::vector<int> ints(const JsonObject& object, const char* key) {
  std::vector<int> values;
  for (const std::int64_t value : object.integers(key)) values.push_back(static_cast<int>(value));
  return values;
}

int whole(const JsonObject& object, const char* key) {
  return static_cast<int>(object.integer(key));
}

Buffer read_buffer(const JsonObject& object, const char* key) {
  const std::string name = object.text(key);
  for (const Buffer buffer : kBuffers) {
    if (msccl::to_string(buffer) == name) return buffer;
  }
  object.refuse(fmt::format("{} is '{}'; known buffers are i, o, s", key, name));
}

/// Nothing for "none".
std::optional<ChannelType> read_channel_type(const JsonObject& object, const char* key) {
  const std::string name = object.text(key);
  if (name == "none") return std::nullopt;
  const auto type = find_channel_type(name);
  if (!type)
    object.refuse(fmt::format("{} is '{}'; known channel types are memory, port, switch", key, name));
  return type;
}

std::uint64_t message_size(const JsonObject& object, const char* key, std::uint64_t fallback) {
  if (!object.has(key)) return fallback;
  const Json& value = object.at(key);
  if (!value.is_number_unsigned())
    object.refuse(
        fmt::format("{} is {}; it has to be a whole number of bytes, at most 2^64 - 1", key, value.dump()));
  return value.get<std::uint64_t>();
}

Operand read_operand(const JsonObject& object) {
  Operand operand{.index = whole(object, "index"), .size = whole(object, "size")};
  if (object.has("switch_channel_id")) {
    operand.where = Operand::Where::group;
    operand.id = whole(object, "switch_channel_id");
  } else if (object.has("buffer_id")) {
    operand.where = Operand::Where::remote;
    operand.id = whole(object, "buffer_id");
  } else {
    operand.buffer = read_buffer(object, "type");
  }
  return operand;
}

Op read_op(const JsonObject& object) {
  const std::string name = object.text("name");
  const auto type = find_op_type(name);
  if (!type) object.refuse(fmt::format("the operation is '{}'; known are: {}", name, op_type_names()));
  Op op{.type = *type};
  if (object.has("channel_type")) op.channel_type = read_channel_type(object, "channel_type");
  if (object.has("channel_ids")) op.channels = ints(object, "channel_ids");
  if (object.has("src_buff"))
    object.for_each_object("src_buff",
                           [&](const JsonObject& o, std::size_t) { op.src.push_back(read_operand(o)); });
  if (object.has("dst_buff"))
    object.for_each_object("dst_buff",
                           [&](const JsonObject& o, std::size_t) { op.dst.push_back(read_operand(o)); });
  if (object.has("semaphore_ids")) op.semaphores = ints(object, "semaphore_ids");
  if (object.has("barrier_id")) op.barrier = whole(object, "barrier_id");
  if (object.has("num_threadblocks")) op.num_tbs = whole(object, "num_threadblocks");
  if (object.has("tbg_info")) {
    const JsonObject group(object.at("tbg_info"), object.place_of("tbg_info"));
    op.slice = whole(group, "tb_id");
    op.num_slices = whole(group, "tbg_size");
  }
  // The executor adds, whatever a plan says.
  if (object.has("reduce_op") && object.text("reduce_op") != "sum") {
    object.refuse(fmt::format("reduce_op is '{}'; the executor knows sum alone", object.text("reduce_op")),
                  ExitCode::unavailable);
  }
  if (op.type == OpType::pipeline) {
    const JsonObject context(object.at("iter_context"), object.place_of("iter_context"));
    op.unit_size = context.integer("unit_size");
    op.num_chunks = whole(context, "num_chunks");
    object.for_each_object("ops", [&](const JsonObject& o, std::size_t) { op.ops.push_back(read_op(o)); });
  }
  return op;
}

ThreadBlock read_tb(const JsonObject& object, std::size_t number) {
  if (object.integer("id") != static_cast<std::int64_t>(number))
    object.refuse(fmt::format("id is {}; threadblocks stand in the order of their ids, here {}",
                              object.integer("id"), number));
  ThreadBlock tb;
  object.for_each_object("channels", [&](const JsonObject& channel, std::size_t) {
    const auto type = read_channel_type(channel, "channel_type");
    if (!type) return;
    for (const int id : ints(channel, "channel_ids")) tb.channels_of(*type).push_back(id);
  });
  if (object.has("remote_buffer_refs")) {
    object.for_each_object("remote_buffer_refs", [&](const JsonObject& refs, std::size_t) {
      const auto type = read_channel_type(refs, "access_channel_type");
      if (!type || *type == ChannelType::switch_)
        refs.refuse("access_channel_type is neither memory nor port");
      auto& known = tb.buffers[static_cast<std::size_t>(*type)];
      for (const int id : ints(refs, "remote_buffer_ids")) known.push_back(id);
    });
  }
  object.for_each_object("ops", [&](const JsonObject& op, std::size_t) { tb.ops.push_back(read_op(op)); });
  return tb;
}

Gpu read_gpu(const JsonObject& object, std::size_t number) {
  if (object.integer("id") != static_cast<std::int64_t>(number))
    object.refuse(
        fmt::format("id is {}; GPUs stand in the order of their ids, here {}", object.integer("id"), number));
  Gpu gpu{.input_chunks = whole(object, "input_chunks"),
          .output_chunks = whole(object, "output_chunks"),
          .scratch_chunks = whole(object, "scratch_chunks")};
  object.for_each_object("channels", [&](const JsonObject& channel, std::size_t) {
    const auto type = read_channel_type(channel, "channel_type");
    if (!type) return;
    if (*type != ChannelType::switch_) {
      auto& peers = gpu.peers[static_cast<std::size_t>(*type)];
      for (const int peer : ints(channel, "connected_to")) peers.push_back(peer);
      return;
    }
    // Older plans call the buffer "buff".
    const Buffer buffer = read_buffer(channel, channel.has("buffer_type") ? "buffer_type" : "buff");
    channel.for_each_object("rank_groups", [&](const JsonObject& group, std::size_t) {
      gpu.groups.push_back({.buffer = buffer, .size = whole(group, "size"), .ranks = ints(group, "ranks")});
    });
  });
  if (object.has("remote_buffers")) {
    object.for_each_object("remote_buffers", [&](const JsonObject& remote, std::size_t) {
      RemoteBuffer buffer{.gpu = whole(remote, "rank"), .buffer = read_buffer(remote, "type")};
      for (const Json& name : remote.array("access_channel_types")) {
        if (name == "memory")
          buffer.by[0] = true;
        else if (name == "port")
          buffer.by[1] = true;
        else
          remote.refuse(fmt::format("access_channel_types has {}; known are memory, port", name.dump()));
      }
      gpu.remote_buffers.push_back(buffer);
    });
  }
  if (object.has("semaphores")) {
    object.for_each_object("semaphores", [&](const JsonObject& semaphore, std::size_t) {
      gpu.semaphores.push_back(whole(semaphore, "init_value"));
    });
  }
  object.for_each_object("threadblocks",
                         [&](const JsonObject& tb, std::size_t t) { gpu.tbs.push_back(read_tb(tb, t)); });
  return gpu;
}

Json operands_to_json(const std::vector<Operand>& operands) {
  Json all = Json::array();
  for (const Operand& operand : operands) {
    Json json;
    if (operand.where == Operand::Where::local) json["type"] = msccl::to_string(operand.buffer);
    if (operand.where == Operand::Where::remote) json["buffer_id"] = operand.id;
    if (operand.where == Operand::Where::group) json["switch_channel_id"] = operand.id;
    json["index"] = operand.index;
    json["size"] = operand.size;
    all.push_back(std::move(json));
  }
  return all;
}

bool adds(OpType type) {
  using enum OpType;
  constexpr std::array kinds = {reduce,
                                reduce_send,
                                read_reduce,
                                read_reduce_send,
                                reduce_send_packets,
                                reduce_packets,
                                reduce_copy_packets,
                                reduce_copy_send_packets,
                                group_reduce_store};
  return std::ranges::find(kinds, type) != kinds.end();
}

Json op_to_json(const Op& op) {
  Json json;
  json["name"] = to_string(op.type);
  if (op.type == OpType::pipeline) {
    json["iter_context"] = {{"unit_size", op.unit_size}, {"num_chunks", op.num_chunks}};
    json["ops"] = Json::array();
    for (const Op& inner : op.ops) json["ops"].push_back(op_to_json(inner));
    return json;
  }
  if (!op.src.empty()) json["src_buff"] = operands_to_json(op.src);
  if (!op.dst.empty()) json["dst_buff"] = operands_to_json(op.dst);
  if (!op.channels.empty()) json["channel_ids"] = op.channels;
  if (op.channel_type) json["channel_type"] = to_string(*op.channel_type);
  if (!op.semaphores.empty()) json["semaphore_ids"] = op.semaphores;
  if (op.barrier >= 0) {
    json["barrier_id"] = op.barrier;
    json["num_threadblocks"] = op.num_tbs;
  }
  if (adds(op.type)) json["reduce_op"] = "sum";
  if (op.num_slices > 1) json["tbg_info"] = {{"tb_id", op.slice}, {"tbg_size", op.num_slices}};
  return json;
}

Json tb_to_json(const ThreadBlock& tb, std::size_t number) {
  Json json;
  json["id"] = number;
  json["channels"] = Json::array();
  json["remote_buffer_refs"] = Json::array();
  for (const ChannelType type : kChannelTypes) {
    if (!tb.channels_of(type).empty())
      json["channels"].push_back({{"channel_type", to_string(type)}, {"channel_ids", tb.channels_of(type)}});
    if (type == ChannelType::switch_ || tb.buffers[static_cast<std::size_t>(type)].empty()) continue;
    json["remote_buffer_refs"].push_back({{"access_channel_type", to_string(type)},
                                          {"remote_buffer_ids", tb.buffers[static_cast<std::size_t>(type)]}});
  }
  json["ops"] = Json::array();
  for (const Op& op : tb.ops) json["ops"].push_back(op_to_json(op));
  return json;
}

Json gpu_to_json(const Gpu& gpu, std::size_t number) {
  Json json;
  json["id"] = number;
  json["input_chunks"] = gpu.input_chunks;
  json["output_chunks"] = gpu.output_chunks;
  json["scratch_chunks"] = gpu.scratch_chunks;
  json["channels"] = Json::array();
  for (std::size_t type = 0; type < gpu.peers.size(); ++type) {
    if (gpu.peers[type].empty()) continue;
    json["channels"].push_back(
        {{"channel_type", to_string(kChannelTypes[type])}, {"connected_to", gpu.peers[type]}});
  }
  for (const Group& group : gpu.groups) {
    const Json ranks = {{"size", group.size}, {"ranks", group.ranks}};
    json["channels"].push_back({{"channel_type", "switch"},
                                {"buffer_type", msccl::to_string(group.buffer)},
                                {"rank_groups", Json::array({ranks})}});
  }
  json["remote_buffers"] = Json::array();
  for (const RemoteBuffer& buffer : gpu.remote_buffers) {
    Json by = Json::array();
    for (std::size_t type = 0; type < buffer.by.size(); ++type) {
      if (buffer.by[type]) by.push_back(to_string(kChannelTypes[type]));
    }
    json["remote_buffers"].push_back(
        {{"rank", buffer.gpu}, {"type", msccl::to_string(buffer.buffer)}, {"access_channel_types", by}});
  }
  json["semaphores"] = Json::array();
  for (const int first : gpu.semaphores) json["semaphores"].push_back({{"init_value", first}});
  json["threadblocks"] = Json::array();
  for (std::size_t t = 0; t < gpu.tbs.size(); ++t) json["threadblocks"].push_back(tb_to_json(gpu.tbs[t], t));
  return json;
}

}  // namespace

bool is_plan(const Json& json) {
  return json.is_object() && !json.contains("format") && json.contains("gpus") && json.contains("collective");
}

Plan plan_from_json(const Json& json) {
  const JsonObject object(json, "");
  Plan plan{.name = object.text("name"), .collective = object.text("collective")};
  const std::string protocol = object.text("protocol");
  if (protocol != "Simple" && protocol != "LL")
    object.refuse(fmt::format("protocol is '{}'; known are Simple, LL", protocol));
  plan.packets = protocol == "LL";
  plan.in_place = object.flag_or("inplace", false);
  if (!object.has("inplace")) object.refuse("inplace is missing; give true or false");
  plan.reuse_resources = object.flag_or("reuse_resources", false);
  plan.double_scratch_buffer = object.flag_or("use_double_scratch_buffer", false);
  if (object.has("num_threads_per_block"))
    plan.threads = static_cast<int>(object.integer("num_threads_per_block", {1, 1024}));
  if (object.has("buffer_alignment"))
    plan.alignment = static_cast<int>(object.integer("buffer_alignment", {1, 1 << 20}));
  plan.min_bytes = message_size(object, "min_message_size", plan.min_bytes);
  plan.max_bytes = message_size(object, "max_message_size", plan.max_bytes);
  if (plan.max_bytes < plan.min_bytes)
    object.refuse(
        fmt::format("max_message_size {} is less than min_message_size {}", plan.max_bytes, plan.min_bytes));
  object.for_each_object(
      "gpus", [&](const JsonObject& gpu, std::size_t g) { plan.gpus.push_back(read_gpu(gpu, g)); });
  if (plan.gpus.empty()) object.refuse("gpus is empty; a plan needs one GPU at least");
  return plan;
}

Json plan_to_json(const Plan& plan) {
  Json json;
  json["name"] = plan.name;
  json["collective"] = plan.collective;
  json["protocol"] = plan.packets ? "LL" : "Simple";
  json["inplace"] = plan.in_place;
  json["reuse_resources"] = plan.reuse_resources;
  json["gpus"] = Json::array();
  for (std::size_t g = 0; g < plan.gpus.size(); ++g) json["gpus"].push_back(gpu_to_json(plan.gpus[g], g));
  json["num_threads_per_block"] = plan.threads;
  json["use_double_scratch_buffer"] = plan.double_scratch_buffer;
  json["buffer_alignment"] = plan.alignment;
  json["min_message_size"] = plan.min_bytes;
  json["max_message_size"] = plan.max_bytes;
  return json;
}

}  // namespace rondo::mscclpp
