#include "cardinality.hpp"

#include <algorithm>
#include <span>

#include "rondo/core/index.hpp"

namespace rondo {
namespace {

std::vector<int> totals(Cnf& cnf, std::span<const int> inputs, std::size_t most) {
  if (inputs.size() <= 1) return {inputs.begin(), inputs.end()};
  const std::size_t middle = inputs.size() / 2;
  const std::vector<int> left = totals(cnf, inputs.first(middle), most);
  const std::vector<int> right = totals(cnf, inputs.subspan(middle), most);
  std::vector<int> sum(std::min(most, left.size() + right.size()));
  for (int& output : sum) output = cnf.new_variable();
  for (std::size_t i = 0; i <= left.size(); ++i) {
    for (std::size_t j = 0; j <= right.size(); ++j) {
      if (i + j == 0 || i + j > sum.size()) continue;
      std::vector<int> clause;
      if (i > 0) clause.push_back(-left[i - 1]);
      if (j > 0) clause.push_back(-right[j - 1]);
      clause.push_back(sum[i + j - 1]);
      cnf.add(clause);
    }
  }
  return sum;
}

}  // namespace

std::vector<int> count_true(Cnf& cnf, std::vector<int> inputs, int most) {
  return totals(cnf, inputs, index(most));
}

}  // namespace rondo
