#include <algorithm>

#include "stages.hpp"

namespace rondo::xmlcheck {

using msccl::Buffer;
using msccl::Coll;
using msccl::Program;

Memory::Memory(const Program& program, bool in_place) : in_place_(in_place) {
  for (int g = 0; g < program.num_gpus(); ++g) {
    // The caller's buffers have the size that the collective gives them, whatever the program uses of them.
    const BufferSizes sizes = expected_sizes(program, g);
    const auto input = static_cast<std::size_t>(sizes.input);
    const auto output = static_cast<std::size_t>(sizes.output);
    const auto mine = static_cast<std::size_t>(g);
    const auto scratch = static_cast<std::size_t>(program.gpus[mine].scratch_chunks);
    Area area;
    std::size_t user = input + output;
    area.begin[static_cast<std::size_t>(Buffer::output)] = input;
    if (in_place) {
      // NCCL's conventions: of a buffer with a part a GPU, the other one is the GPU's own part.
      const bool in_output = program.coll == Coll::allgather || program.coll == Coll::gather;
      const bool in_input = program.coll == Coll::reduce_scatter || program.coll == Coll::scatter;
      area.begin[static_cast<std::size_t>(Buffer::input)] = in_output ? mine * input : 0;
      area.begin[static_cast<std::size_t>(Buffer::output)] = in_input ? mine * output : 0;
      user = std::max(input, output);
    }
    area.begin[static_cast<std::size_t>(Buffer::scratch)] = user;
    area.size = user + scratch;
    areas_.push_back(area);
  }
}

}  // namespace rondo::xmlcheck
