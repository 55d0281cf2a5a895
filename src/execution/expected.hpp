#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "deal.hpp"
#include "rondo/execution/program.hpp"

namespace rondo::execution {

/// Bytes [begin, begin + bytes.size()) of a GPU's input in a repetition: hashes, so that no two places look
/// alike; of floating-point numbers, numbers from 0.75 to 1.25 and their negatives. Whole numbers.
void fill_input(const Program& program, InputPlace begin, std::span<std::byte> bytes, int repetition);

/// What an output has to be.
struct ExpectedOutput {
  Bytes bytes = {};  ///< empty where the collective leaves the output open, and of other ranks' GPUs
  /// By how much each number may differ; empty: not at all. Adding n numbers of magnitude sum m in any order
  /// errs by at most (n - 1) m eps / 2 (Higham, Accuracy and Stability of Numerical Algorithms, 4.2), twice
  /// of which two orders may differ; a product of n likewise, with its own magnitude.
  std::vector<double> allowed = {};
};

/// The outputs of this rank's GPUs by the program's deliveries. What no delivery covers is `filler`.
std::vector<ExpectedOutput> expected_outputs(const Program& program, const Deal& deal, int repetition,
                                             std::byte filler);

/// The first number (the first byte, where nothing is combined) of `have` that is not as expected, in words;
/// empty: there is none.
std::string first_difference(const Program& program, const ExpectedOutput& expected,
                             std::span<const std::byte> have, std::byte filler);

}  // namespace rondo::execution
