#include "rondo/core/collective_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "refuse.hpp"
#include "rondo/core/error.hpp"

namespace rondo {
namespace {

constexpr std::string_view kOutputSize = "what a GPU ends with, its own part included";
constexpr std::string_view kRootSize = "the root's buffer";
constexpr std::size_t kSum = InputPart::kSumOfAll;

/// A collective is one row here, by its rule: part `to.part` of the output of `to.gpu` is {GPU, part of its
/// input}.
constexpr std::array kRows = {
    CollectiveRow{.name = "allgather",
                  .help = "all parts to every GPU",
                  .size_help = kOutputSize,
                  .output = {.all_parts = true},
                  .source =
                      [](const OutputPart& to) {
                        return InputPart{to.part, 0};
                      }},
    CollectiveRow{.name = "alltoall",
                  .help = "from every GPU another part to each",
                  .size_help = kOutputSize,
                  .input = {.all_parts = true},
                  .output = {.all_parts = true},
                  .source =
                      [](const OutputPart& to) {
                        return InputPart{to.part, to.gpu};
                      }},
    CollectiveRow{.name = "broadcast",
                  .help = "the root's buffer to every GPU",
                  .size_help = kRootSize,
                  .has_root = true,
                  .source =
                      [](const OutputPart& to) {
                        return InputPart{to.root, 0};
                      }},
    CollectiveRow{.name = "scatter",
                  .help = "from the root another part to each",
                  .size_help = kRootSize,
                  .has_root = true,
                  .input = {.all_parts = true, .at_root_only = true},
                  .source =
                      [](const OutputPart& to) {
                        return InputPart{to.root, to.gpu};
                      }},
    CollectiveRow{.name = "gather",
                  .help = "all parts to the root",
                  .size_help = kRootSize,
                  .has_root = true,
                  .output = {.all_parts = true, .at_root_only = true},
                  .source =
                      [](const OutputPart& to) {
                        return InputPart{to.part, 0};
                      }},
    CollectiveRow{.name = "allreduce",
                  .help = "the sum of all buffers to every GPU",
                  .size_help = "a GPU's buffer",
                  .reduces = true,
                  .source =
                      [](const OutputPart&) {
                        return InputPart{kSum, 0};
                      }},
    CollectiveRow{.name = "reduce_scatter",
                  .other_spelling = "reducescatter",
                  .help = "to every GPU its part of the sum of all inputs",
                  .size_help = "a GPU's input",
                  .reduces = true,
                  .input = {.all_parts = true},
                  .source =
                      [](const OutputPart& to) {
                        return InputPart{kSum, to.gpu};
                      }},
    CollectiveRow{.name = "reduce",
                  .help = "the sum of all buffers to the root",
                  .size_help = "a GPU's buffer",
                  .has_root = true,
                  .reduces = true,
                  .output = {.at_root_only = true},
                  .source =
                      [](const OutputPart&) {
                        return InputPart{kSum, 0};
                      }},
    CollectiveRow{.name = "custom", .help = "as --demand says"},
};

constexpr const CollectiveRow& row_of(std::string_view name) {
  return *std::find_if(kRows.begin(), kRows.end(),
                       [&](const CollectiveRow& row) { return row.name == name; });
}

}  // namespace

constinit const Collective Collective::allgather(row_of("allgather"));
constinit const Collective Collective::alltoall(row_of("alltoall"));
constinit const Collective Collective::broadcast(row_of("broadcast"));
constinit const Collective Collective::scatter(row_of("scatter"));
constinit const Collective Collective::gather(row_of("gather"));
constinit const Collective Collective::allreduce(row_of("allreduce"));
constinit const Collective Collective::reduce_scatter(row_of("reduce_scatter"));
constinit const Collective Collective::reduce(row_of("reduce"));
constinit const Collective Collective::custom(row_of("custom"));

std::span<const CollectiveRow> collective_rows() {
  return kRows;
}

std::optional<Collective> find_collective(std::string_view name) {
  for (const CollectiveRow& row : kRows) {
    if (!name.empty() && (row.name == name || row.other_spelling == name)) return Collective(row);
  }
  return std::nullopt;
}

Collective parse_collective(std::string_view name) {
  const auto found = find_collective(name);
  if (found) return *found;
  std::string known;
  for (const CollectiveRow& row : kRows) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  if (name == "scan" || name == "exscan") {
    throw Error(ExitCode::usage, fmt::format("collective '{}' is left out: prefix sums have an order that no "
                                             "schedule of sums here keeps; known are {}",
                                             name, known));
  }
  if (const auto plain =
          name.ends_with('v') ? find_collective(name.substr(0, name.size() - 1)) : std::nullopt;
      plain && (*plain)->num_counts(2) > 0) {
    throw Error(ExitCode::usage,
                fmt::format("unknown collective '{}'; give {} and --counts FILE with the bytes of each part",
                            name, (*plain)->name));
  }
  throw Error(ExitCode::usage, fmt::format("unknown collective '{}'; known are {}", name, known));
}

PartTable::PartTable(Collective collective, std::size_t num_gpus, GpuId root)
    : collective_(collective), num_gpus_(num_gpus), places_(num_gpus * num_gpus) {
  collective->for_each_output_part(num_gpus, root.index(), [&](const OutputPart& to, const InputPart& from) {
    if (from.gpu == InputPart::kSumOfAll) return;
    places_[from.gpu * num_gpus + to.gpu] = {static_cast<int>(from.part), static_cast<int>(to.part)};
  });
}

std::optional<PartTable::Places> PartTable::find(GpuId from, GpuId to) const {
  const Places& places = places_[from.index() * num_gpus_ + to.index()];
  if (places.input_part < 0) return std::nullopt;
  return places;
}

PartTable::Places PartTable::between(GpuId from, GpuId to) const {
  if (const auto places = find(from, to)) return *places;
  refuse(fmt::format("GPU {} has nothing for GPU {} in {}", from.value, to.value, collective_->name));
}

}  // namespace rondo
