#include <algorithm>

#include "stages.hpp"

namespace rondo::xmlcheck {

using msccl::Buffer;
using msccl::Program;

Memory::Memory(const Program& program, bool in_place) : in_place_(in_place) {
  for (int g = 0; g < program.num_gpus(); ++g) {
    // The caller's buffers have the size that the collective gives them, whatever the program uses of them.
    const msccl::BufferChunks sizes = msccl::buffer_chunks(program, g);
    const auto input = static_cast<std::size_t>(sizes.input);
    const auto output = static_cast<std::size_t>(sizes.output);
    const auto mine = static_cast<std::size_t>(g);
    const auto scratch = static_cast<std::size_t>(program.gpus[mine].scratch_chunks);
    Area area;
    std::size_t user = input + output;
    area.begin[static_cast<std::size_t>(Buffer::output)] = input;
    if (in_place) {
      area.begin[static_cast<std::size_t>(Buffer::input)] =
          program.coll->input_in_output() ? mine * input : 0;
      area.begin[static_cast<std::size_t>(Buffer::output)] =
          program.coll->output_in_input() ? mine * output : 0;
      user = std::max(input, output);
    }
    area.begin[static_cast<std::size_t>(Buffer::scratch)] = user;
    area.size = user + scratch;
    areas_.push_back(area);
  }
}

}  // namespace rondo::xmlcheck
