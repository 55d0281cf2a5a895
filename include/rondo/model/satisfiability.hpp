#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rondo/model/deadline.hpp"

namespace rondo {

/// A formula in conjunctive normal form. A literal is a variable (1, 2, ...) or its negation (-1, -2, ...).
class Cnf {
 public:
  int new_variable() { return ++num_variables_; }
  void add(std::span<const int> clause) {
    literals_.insert(literals_.end(), clause.begin(), clause.end());
    literals_.push_back(0);
    ++num_clauses_;
  }
  void add(std::initializer_list<int> clause) { add(std::span(clause.begin(), clause.size())); }

  int num_variables() const { return num_variables_; }
  std::int64_t num_clauses() const { return num_clauses_; }
  /// The clauses one after another, each with a 0 at its end.
  const std::vector<int>& literals() const { return literals_; }

 private:
  int num_variables_ = 0;
  std::int64_t num_clauses_ = 0;
  std::vector<int> literals_;
};

/// As DIMACS writes it.
std::string to_dimacs(const Cnf& cnf);

struct SatLimits {
  std::int64_t max_conflicts = -1;  ///< -1 = none
  Deadline deadline = {};
};

enum class SatStatus : std::uint8_t { satisfiable, unsatisfiable, unknown };

struct SatAnswer {
  SatStatus status = SatStatus::unknown;  ///< unknown: a limit or an interruption ended the search
  std::vector<char> value = {};           ///< one a variable, from 1 on; where satisfiable
  std::int64_t conflicts = 0;
};

/// One backend. Implementations hold no state between calls and may be shared.
class SatSolver {
 public:
  virtual ~SatSolver() = default;
  virtual std::string name() const = 0;
  /// The same formula and number of conflicts give the same answer. `proof`: the file to which a refutation
  /// is written, in DRAT with binary encoding off; of other answers what it holds is no proof. Throws
  /// Error(io) where it cannot be written.
  virtual SatAnswer solve(const Cnf& cnf, const SatLimits& limits,
                          const std::filesystem::path& proof = {}) const = 0;
};

}  // namespace rondo
