#include "shapes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <numeric>

namespace rondo::benchmarks::combining {
namespace {

constexpr int kGpus = 32;

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): the
/// same numbers with every compiler.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  /// From 0 to less than 1.
  double next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  int below(int n) { return static_cast<int>(next() * n); }

 private:
  std::uint64_t state_;
};

/// Zipf's law: the k-th of n has 1/k of the first; in random order.
std::vector<double> zipf(int n, Numbers& numbers) {
  std::vector<double> weight;
  for (int k = 1; k <= n; ++k) weight.push_back(1.0 / k);
  for (int i = n - 1; i > 0; --i)
    std::swap(weight[static_cast<std::size_t>(i)], weight[static_cast<std::size_t>(numbers.below(i + 1))]);
  return weight;
}

/// What a layer of a mixture of experts sends in AllToAllV: 64 experts, two a GPU, as popular as Zipf's law
/// says; 4096 tokens a GPU, each to two experts, 4096 numbers of 16 bits a token.
std::vector<std::vector<double>> mixture_of_experts(std::uint64_t seed) {
  constexpr int kExperts = 64;
  constexpr int kChoices = 2 * 4096;
  constexpr double kTokenBytes = 2 * 4096;
  Numbers numbers(seed);
  std::vector<double> up_to = zipf(kExperts, numbers);
  std::partial_sum(up_to.begin(), up_to.end(), up_to.begin());
  std::vector<std::vector<double>> bytes(kGpus, std::vector<double>(kGpus, 0));
  for (auto& row : bytes) {
    for (int i = 0; i < kChoices; ++i) {
      const double x = numbers.next() * up_to.back();
      const auto expert = std::upper_bound(up_to.begin(), up_to.end(), x) - up_to.begin();
      row[static_cast<std::size_t>(expert) * kGpus / kExperts] += kTokenBytes;
    }
  }
  return bytes;
}

/// A gigabyte in parts as Zipf's law has them.
std::vector<std::vector<double>> unequal_parts(std::uint64_t seed) {
  Numbers numbers(seed);
  std::vector<double> bytes = zipf(kGpus, numbers);
  const double sum = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  for (double& part : bytes) part = std::round(1e9 * part / sum);
  return {bytes};
}

std::string write_counts(const std::filesystem::path& path, const std::vector<std::vector<double>>& rows) {
  std::ofstream file(path);
  for (const auto& row : rows) {
    for (const double bytes : row) file << static_cast<std::int64_t>(bytes) << ' ';
    file << '\n';
  }
  return path.string();
}

}  // namespace

std::vector<ShapeCase> shape_cases(const std::filesystem::path& folder) {
  const std::string experts = write_counts(folder / "experts.txt", mixture_of_experts(1));
  const std::string parts = write_counts(folder / "parts.txt", unequal_parts(1));
  const std::string rails = "rails:boxes=4";
  std::vector<ShapeCase> cases{
      {"alltoall, mixture of experts", rails, {"--collective", "alltoall", "--counts", experts}},
      {"allgather, Zipf", rails, {"--collective", "allgather", "--counts", parts}},
      {"reduce_scatter, Zipf", rails, {"--collective", "reduce_scatter", "--counts", parts}}};
  // 12 of 32 GPUs: three in each of four boxes, a third of a torus; and a square of 3 x 4 in a mesh.
  struct Group {
    std::string fabric;
    std::string members;
  };
  for (const Group& group : {Group{rails, "0-2,8-10,16-18,24-26"}, Group{"torus:dims=8x4", "0-11"},
                             Group{"mesh:dims=6x6", "7-10,13-16,19-22"}}) {
    for (const char* collective : {"allgather", "allreduce"}) {
      for (const char* relay : {"any", "none"}) {
        cases.push_back(
            {std::string(collective) + " of 12, relay " + relay,
             group.fabric,
             {"--collective", collective, "--size", "1GB", "--group", group.members, "--relay", relay}});
      }
    }
  }
  return cases;
}

}  // namespace rondo::benchmarks::combining
