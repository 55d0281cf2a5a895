#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rondo/core/ids.hpp"

/// The collectives: a row each in src/core/collective_table.cpp. A collective is a rule that says of every
/// part of every output which part of which input it is. Demands, the layout of buffers in MSCCL programs,
/// what an execution has to end with and what a program is checked against all follow from that rule.
namespace rondo {

/// Part `part` of the output of `gpu`, in a collective over `num_gpus` GPUs. `root` counts where there is
/// one.
struct OutputPart {
  std::size_t gpu = 0;
  std::size_t part = 0;
  std::size_t num_gpus = 0;
  std::size_t root = 0;
};

/// Part `part` of the input of `gpu`, or of the sum of all inputs where `gpu` is kSumOfAll.
struct InputPart {
  static constexpr std::size_t kSumOfAll = static_cast<std::size_t>(-1);
  std::size_t gpu = 0;
  std::size_t part = 0;
};

/// A GPU's input or output.
struct BufferShape {
  bool all_parts = false;     ///< as many parts as there are GPUs; else one
  bool at_root_only = false;  ///< no other GPU has such a buffer
};

struct CollectiveRow {
  std::string_view name = {};            ///< on the command line, in files, and as `coll` of MSCCL XML
  std::string_view other_spelling = {};  ///< of `coll`; empty: none
  std::string_view help = {};            ///< who gets what
  std::string_view size_help = {};       ///< what --size is the size of
  bool has_root = false;
  bool reduces = false;  ///< outputs are sums
  BufferShape input = {};
  BufferShape output = {};
  InputPart (*source)(const OutputPart&) = nullptr;  ///< none: custom, where a demand file says it

  std::size_t input_parts(std::size_t num_gpus) const { return input.all_parts ? num_gpus : 1; }
  std::size_t output_parts(std::size_t num_gpus) const { return output.all_parts ? num_gpus : 1; }
  /// Parts that make up the size of the collective.
  std::size_t num_parts(std::size_t num_gpus) const {
    return input.all_parts || output.all_parts ? num_gpus : 1;
  }
  /// How many figures say how large each part is: one a member; one a pair where every member has another
  /// part for each; 0 where there is one buffer only.
  std::size_t num_counts(std::size_t num_gpus) const {
    if (source == nullptr || (!input.all_parts && !output.all_parts)) return 0;
    return (input.all_parts ? num_gpus : 1) * (output.all_parts ? num_gpus : 1);
  }
  /// Which of them is that of a part.
  std::size_t count_of(const OutputPart& to, const InputPart& from) const {
    if (input.all_parts && output.all_parts) return from.gpu * to.num_gpus + to.gpu;
    return input.all_parts ? from.part : to.part;
  }
  bool has_input(std::size_t gpu, std::size_t root) const { return !input.at_root_only || gpu == root; }
  bool has_output(std::size_t gpu, std::size_t root) const { return !output.at_root_only || gpu == root; }

  /// In place by NCCL's conventions, input and output are one buffer: of one with a part a GPU, the other is
  /// the GPU's own part. Which of the two is then that part.
  bool input_in_output() const { return output.all_parts && !input.all_parts; }
  bool output_in_input() const { return input.all_parts && !output.all_parts; }

  /// Calls visit(OutputPart, InputPart) for all that the outputs have to hold, by GPU and part.
  template <class Visit>
  void for_each_output_part(std::size_t num_gpus, std::size_t root, const Visit& visit) const {
    for (std::size_t g = 0; g < num_gpus && source != nullptr; ++g) {
      if (!has_output(g, root)) continue;
      for (std::size_t p = 0; p < output_parts(num_gpus); ++p) {
        const OutputPart to{g, p, num_gpus, root};
        visit(to, source(to));
      }
    }
  }
};

/// One of the rows.
class Collective {
 public:
  constexpr explicit Collective(const CollectiveRow& row) : row_(&row) {}
  const CollectiveRow* operator->() const { return row_; }
  friend bool operator==(Collective, Collective) = default;

  /// Rows that code and tests name; not all there are.
  static const Collective allgather, alltoall, broadcast, scatter, gather, allreduce, reduce_scatter, reduce,
      custom;

 private:
  const CollectiveRow* row_;
};

/// All rows.
std::span<const CollectiveRow> collective_rows();

/// By its name or other spelling.
std::optional<Collective> find_collective(std::string_view name);
/// By its name or other spelling. Throws Error(usage) with the list of the known names.
Collective parse_collective(std::string_view name);
inline std::string_view to_string(Collective collective) {
  return collective->name;
}

/// Where what one GPU has for another stands in the input of one and in the output of the other.
class PartTable {
 public:
  struct Places {
    int input_part = -1;
    int output_part = -1;
  };
  /// Takes 8 bytes a pair of GPUs.
  PartTable(Collective collective, std::size_t num_gpus, GpuId root);

  /// Nothing where `from` has nothing for `to`.
  std::optional<Places> find(GpuId from, GpuId to) const;
  /// Throws Error(bad_data) where `from` has nothing for `to`.
  Places between(GpuId from, GpuId to) const;

 private:
  Collective collective_;
  std::size_t num_gpus_;
  std::vector<Places> places_;  ///< per (from, to)
};

}  // namespace rondo
