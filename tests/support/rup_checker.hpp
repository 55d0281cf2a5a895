#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace rondo {

/// Checks that a DRAT proof whose lemmas all follow by unit propagation refutes a formula in DIMACS. Shares
/// nothing with what wrote them. Deletions of unit clauses are passed over, as drat-trim does.
class RupChecker {
 public:
  /// What is wrong; empty where the proof holds.
  static std::string check(const std::string& formula_file, const std::string& proof_file) {
    RupChecker checker;
    std::ifstream formula(formula_file);
    std::ifstream proof(proof_file);
    if (!formula || !proof) return "a file is missing";
    std::string line;
    std::getline(formula, line);
    std::istringstream header(line);
    std::string p;
    std::string cnf;
    int variables = 0;
    long clauses = 0;
    if (!(header >> p >> cnf >> variables >> clauses) || p != "p" || cnf != "cnf") return "no DIMACS header";
    checker.value_.assign(2 * static_cast<std::size_t>(variables) + 2, 0);
    checker.watched_.resize(checker.value_.size());
    for (; std::getline(formula, line); --clauses) checker.add(literals(line));
    if (clauses != 0) return "the header states another number of clauses";
    for (int number = 1; std::getline(proof, line); ++number) {
      if (checker.refuted_) return "";
      if (line.starts_with("d ")) {
        if (!checker.remove(literals(line.substr(2))))
          return "line " + std::to_string(number) + " deletes nothing";
        continue;
      }
      const Clause lemma = literals(line);
      if (!checker.follows(lemma)) return "line " + std::to_string(number) + " does not follow: " + line;
      checker.add(lemma);
    }
    return checker.refuted_ ? "" : "the proof ends without a contradiction";
  }

 private:
  using Clause = std::vector<int>;

  static Clause literals(const std::string& line) {
    std::istringstream words(line);
    Clause clause;
    for (int literal = 0; words >> literal && literal != 0;) clause.push_back(literal);
    return clause;
  }
  static std::size_t place(int literal) {
    return 2 * static_cast<std::size_t>(std::abs(literal)) + (literal < 0 ? 1 : 0);
  }
  bool is_true(int literal) const { return value_[place(literal)] != 0; }
  bool is_false(int literal) const { return value_[place(-literal)] != 0; }

  void assign(int literal) {
    value_[place(literal)] = 1;
    trail_.push_back(literal);
  }

  void add(Clause clause) {
    Clause sorted = clause;
    std::ranges::sort(sorted);
    // What is not false comes first, to be watched.
    std::ranges::stable_partition(clause, [&](int literal) { return !is_false(literal); });
    const std::size_t number = clauses_.size();
    by_literals_[std::move(sorted)].push_back(number);
    const bool is_unit = clause.size() < 2 || is_false(clause[1]);
    if (clause.empty() || is_false(clause[0])) {
      refuted_ = true;
    } else if (is_unit && !is_true(clause[0])) {
      assign(clause[0]);
    }
    if (clause.size() >= 2) {
      watched_[place(clause[0])].push_back(number);
      watched_[place(clause[1])].push_back(number);
    }
    clauses_.push_back(std::move(clause));
    if (!propagate()) refuted_ = true;
  }

  bool remove(Clause clause) {
    std::ranges::sort(clause);
    const auto found = by_literals_.find(clause);
    if (found == by_literals_.end() || found->second.empty()) return false;
    const std::size_t number = found->second.back();
    found->second.pop_back();
    int open = 0;
    for (const int literal : clause) open += is_false(literal) ? 0 : 1;
    if (open > 1 || clause.empty()) clauses_[number].clear();
    return true;
  }

  bool follows(const Clause& lemma) {
    const std::size_t before = trail_.size();
    bool conflict = false;
    for (const int literal : lemma) {
      if (is_true(literal)) conflict = true;
      if (!conflict && !is_false(literal)) assign(-literal);
    }
    conflict = conflict || !propagate();
    for (; trail_.size() > before; trail_.pop_back()) value_[place(trail_.back())] = 0;
    propagated_ = before;
    return conflict;
  }

  /// Returns false at a conflict.
  bool propagate() {
    while (propagated_ < trail_.size()) {
      const int falsified = -trail_[propagated_++];
      std::vector<std::size_t>& watchers = watched_[place(falsified)];
      std::size_t kept = 0;
      for (std::size_t i = 0; i < watchers.size(); ++i) {
        Clause& clause = clauses_[watchers[i]];
        if (clause.empty()) continue;  // deleted
        if (clause[0] == falsified) std::swap(clause[0], clause[1]);
        watchers[kept++] = watchers[i];
        if (is_true(clause[0])) continue;
        const auto other =
            std::find_if(clause.begin() + 2, clause.end(), [&](int literal) { return !is_false(literal); });
        if (other != clause.end()) {
          std::swap(clause[1], *other);
          watched_[place(clause[1])].push_back(watchers[--kept]);
        } else if (is_false(clause[0])) {
          watchers.erase(watchers.begin() + static_cast<std::ptrdiff_t>(kept),
                         watchers.begin() + static_cast<std::ptrdiff_t>(i) + 1);
          return false;
        } else {
          assign(clause[0]);
        }
      }
      watchers.resize(kept);
    }
    return true;
  }

  std::vector<Clause> clauses_;  ///< deleted ones are empty
  std::map<Clause, std::vector<std::size_t>> by_literals_;
  std::vector<char> value_;  ///< by place: whether the literal is true
  std::vector<std::vector<std::size_t>> watched_;
  std::vector<int> trail_;
  std::size_t propagated_ = 0;
  bool refuted_ = false;
};

}  // namespace rondo
