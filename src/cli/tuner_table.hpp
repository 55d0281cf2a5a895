#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rondo/catalogue/entry.hpp"

namespace rondo::cli {

/// CSV of NCCL's example tuner plugin (ext-tuner/example): for each series over all GPUs that NCCL tunes,
/// which of its built-in algorithms that Rondo knows ends first at the sizes of the catalogue, in lines that
/// cover all sizes. Throws Error(unavailable) where there is none of them.
std::string tuner_table(const std::shared_ptr<const Topology>& topology,
                        const std::vector<catalogue::Table>& tables);

}  // namespace rondo::cli
