#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

// The fuzz targets without libFuzzer, for every compiler: each once over its corpus, then over as many inputs
// with random changes as argv[2] says. The same ones in every run.
// clang-format off
#define RONDO_FUZZ_TARGETS(X) \
  X(topology) X(demand) X(schedule_json) X(msccl_xml) X(plan) X(algorithm) X(sketch) X(nccl_xml) X(nvidia_smi) X(job) X(user_block) \
  X(catalogue) X(round_file) X(schedule_file)
// clang-format on

#define RONDO_DECLARE(name) extern "C" int rondo_fuzz_##name(const std::uint8_t* data, std::size_t size);
RONDO_FUZZ_TARGETS(RONDO_DECLARE)

namespace {

using Target = int (*)(const std::uint8_t*, std::size_t);
#define RONDO_ROW(name) std::pair<const char*, Target>{#name, rondo_fuzz_##name},
const std::array kTargets = {RONDO_FUZZ_TARGETS(RONDO_ROW)};

std::vector<std::string> corpus_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

/// Bytes changed, cut out, doubled, or taken from another input.
std::string changed(std::string input, const std::string& other, std::mt19937_64& random) {
  for (auto edits = 1 + random() % 4; edits > 0 && !input.empty(); --edits) {
    const std::size_t at = random() % input.size();
    const std::size_t length = 1 + random() % 16;
    switch (random() % 5) {
      case 0:
        input[at] = static_cast<char>(random());
        break;
      case 1:
        input[at] = static_cast<char>(input[at] ^ (1 << (random() % 8)));
        break;
      case 2:
        input.erase(at, length);
        break;
      case 3:
        input.insert(at, input.substr(random() % input.size(), length));
        break;
      default:
        if (!other.empty()) input.replace(at, length, other.substr(random() % other.size(), length));
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  for (const auto& [name, target] : kTargets) {
    const std::vector<std::string> corpus = corpus_of(std::filesystem::path(argv[1]) / name);
    if (corpus.empty()) {
      std::cerr << "no corpus of " << name << '\n';
      return 66;
    }
    std::mt19937_64 random(1);
    const auto run = [&target = target](const std::string& input) {
      target(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    };
    for (const std::string& input : corpus) run(input);
    const int changes = std::stoi(argv[2]);
    for (int i = 0; i < changes; ++i) {
      run(changed(corpus[random() % corpus.size()], corpus[random() % corpus.size()], random));
    }
    std::cout << name << ": " << corpus.size() << " inputs, " << changes << " changed ones" << std::endl;
  }
  return 0;
}
