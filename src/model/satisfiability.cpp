#include "rondo/model/satisfiability.hpp"

#include <fmt/format.h>

#include <iterator>

namespace rondo {

std::string to_dimacs(const Cnf& cnf) {
  std::string text = fmt::format("p cnf {} {}\n", cnf.num_variables(), cnf.num_clauses());
  for (const int literal : cnf.literals()) {
    fmt::format_to(std::back_inserter(text), "{}{}", literal, literal == 0 ? '\n' : ' ');
  }
  return text;
}

}  // namespace rondo
