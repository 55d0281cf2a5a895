#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <sstream>

#include "link_rates.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/machine.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMostGpus = 1024;

/// How far two GPUs are apart where no NVLink joins them.
enum class Level { same, bridge, cpu, machine };

struct Cell {
  Level level = Level::machine;
  int nvlinks = 0;
};

std::vector<std::string> words_of_line(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// The number behind `prefix`; nothing for other words.
std::optional<int> number_behind(std::string_view prefix, std::string_view word) {
  if (!word.starts_with(prefix)) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(word.data() + prefix.size(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || value < 0 ||
      word.size() > prefix.size() + 6)
    return std::nullopt;
  return value;
}

/// nvidia-smi underlines its head with escape sequences, also in a file.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
      continue;
    }
    while (i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) == 0) ++i;
  }
  return plain;
}

class SmiReader {
 public:
  explicit SmiReader(const std::string& what) : what_(what) {}

  Machine read(const std::string& text) {
    std::istringstream in(without_escapes(text));
    for (std::string line; std::getline(in, line);) {
      ++line_;
      read_line(line);
    }
    check_whole();
    machine_.name = what_.substr(what_.find_last_of('/') + 1);
    machine_.name = machine_.name.substr(0, machine_.name.find(".txt"));
    machine_.source = fmt::format(
        "{}: {} x {}; bandwidths and latencies as NCCL counts them, between sockets "
        "that of one GPU's PCIe",
        what_, rows_.size(), model_->name);
    add_gpus();
    add_nvlinks();
    add_buses();
    return std::move(machine_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ExitCode::bad_data, fmt::format("{} line {}: {}", what_, line_, why));
  }
  [[noreturn]] void refuse_all(const std::string& why) const {
    throw Error(ExitCode::bad_data, fmt::format("{}: {}", what_, why));
  }

  void read_line(const std::string& line) {
    const std::vector<std::string> words = words_of_line(line);
    if (words.empty()) return;
    if (words[0] == "MIG" || line.find("MIG-") != std::string::npos)
      refuse(
          "the GPU is cut into MIG parts, between which nothing is said; switch MIG off (nvidia-smi -mig 0)");
    if (words[0] == "GPU" && words.size() > 2 && words[1].ends_with(':')) return read_name(line);
    const std::optional<int> gpu = number_behind("GPU", words[0]);
    if (!gpu) return;
    if (columns_.empty()) return read_head(words);
    read_row(*gpu, words);
  }

  void read_name(const std::string& line) {
    const GpuModel* model = find_gpu_model(line);
    if (model == nullptr)
      refuse(fmt::format(
          "'{}' is no GPU whose links are known here; write them as a topology (rondo-topology)", line));
    if (model_ != nullptr && model_ != model)
      refuse(fmt::format("GPUs differ ({} and {}); write them as a topology (rondo-topology)", model_->name,
                         model->name));
    model_ = model;
    ++named_;
  }

  void read_head(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      const std::optional<int> gpu = number_behind("GPU", word);
      if (!gpu) break;  // NICs, CPU Affinity, NUMA Affinity
      if (*gpu != static_cast<int>(columns_.size()))
        refuse(fmt::format("column {} is {}; columns are GPU0, GPU1, ...", columns_.size(), word));
      columns_.push_back(word);
    }
    if (columns_.size() < 2) refuse("there is one GPU; a collective needs two");
    if (columns_.size() > kMostGpus) refuse(fmt::format("there are more than {} GPUs", kMostGpus));
  }

  void read_row(int gpu, const std::vector<std::string>& words) {
    if (gpu != static_cast<int>(rows_.size()) || rows_.size() >= columns_.size())
      refuse(fmt::format("this is the row of GPU{}; that of GPU{} comes next", gpu, rows_.size()));
    if (words.size() <= columns_.size()) {
      refuse(fmt::format("the row of GPU{} has {} of {} columns; the text is cut off", gpu, words.size() - 1,
                         columns_.size()));
    }
    std::vector<Cell> row;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      row.push_back(read_cell(words[c + 1], static_cast<std::size_t>(gpu) == c));
    for (std::size_t c = 0; c < rows_.size(); ++c) {
      const Cell& back = rows_[c][static_cast<std::size_t>(gpu)];
      if (back.nvlinks != row[c].nvlinks || back.level != row[c].level)
        refuse(fmt::format("GPU{} to GPU{} is not what GPU{} to GPU{} is", gpu, c, c, gpu));
    }
    rows_.push_back(std::move(row));
  }

  Cell read_cell(const std::string& word, bool diagonal) const {
    if (diagonal != (word == "X"))
      refuse(fmt::format("'{}' stands where {} belongs", word, diagonal ? "X" : "no X"));
    if (word == "X") return {Level::same, 0};
    if (const auto links = number_behind("NV", word); links && *links > 0) return {Level::machine, *links};
    if (word == "PIX" || word == "PXB") return {Level::bridge, 0};
    if (word == "PHB" || word == "NODE") return {Level::cpu, 0};
    if (word == "SYS") return {Level::machine, 0};
    refuse(fmt::format("'{}' is no connection; there are X, NV#, PIX, PXB, PHB, NODE and SYS", word));
  }

  void check_whole() const {
    if (columns_.empty()) refuse_all("there is no matrix of `nvidia-smi topo -m` and no XML of NCCL");
    if (rows_.size() < columns_.size())
      refuse_all(
          fmt::format("the matrix has {} of {} rows; the text is cut off", rows_.size(), columns_.size()));
    if (model_ == nullptr)
      refuse_all(
          "the matrix does not say which GPUs these are; write the file by (nvidia-smi -L; nvidia-smi topo "
          "-m)");
    if (named_ != rows_.size())
      refuse_all(fmt::format("nvidia-smi -L names {} GPUs and the matrix has {}", named_, rows_.size()));
  }

  int add_place(Machine::PlaceKind kind, std::string name) {
    machine_.places.push_back({kind, std::move(name)});
    return static_cast<int>(machine_.places.size()) - 1;
  }

  void add_gpus() {
    for (std::size_t g = 0; g < rows_.size(); ++g)
      machine_.gpus.push_back(add_place(Machine::PlaceKind::gpu, fmt::format("g{}", g)));
  }

  /// A pair's links are its own, unless a GPU would have more of them than there are: then all go to a
  /// switch.
  void add_nvlinks() {
    bool by_switch = false;
    bool alike = true;
    const int first = rows_[0][1].nvlinks;
    for (std::size_t g = 0; g < rows_.size(); ++g) {
      int sum = 0;
      for (std::size_t c = 0; c < rows_.size(); ++c) {
        const int links = rows_[g][c].nvlinks;
        sum += links;
        alike = alike && (g == c || links == first);
        if (links > model_->nvlinks) {
          refuse_all(fmt::format("GPU{} has {} NVLinks to GPU{}, and {} has {}", g, links, c, model_->name,
                                 model_->nvlinks));
        }
      }
      by_switch = by_switch || sum > model_->nvlinks;
    }
    if (by_switch && !alike) {
      refuse_all(fmt::format(
          "GPUs have more NVLinks than the {} of {}, and not as many to each other; write them as a "
          "topology (rondo-topology)",
          model_->nvlinks, model_->name));
    }
    const double GBps = nvlink_GBps(model_->sm).value_or(0);
    for (std::size_t g = 0; g < rows_.size(); ++g) {
      if (by_switch) machine_.nvlinks.push_back({machine_.gpus[g], std::nullopt, first * GBps});
      for (std::size_t c = 0; c < rows_.size() && !by_switch; ++c) {
        if (rows_[g][c].nvlinks > 0)
          machine_.nvlinks.push_back({machine_.gpus[g], machine_.gpus[c], rows_[g][c].nvlinks * GBps});
      }
    }
  }

  /// For each GPU the first one that is at most so far away, by way of others.
  std::vector<std::size_t> clusters(Level level) const {
    std::vector<std::size_t> of(rows_.size());
    std::iota(of.begin(), of.end(), 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t g = 0; g < of.size(); ++g) {
        for (std::size_t c = 0; c < of.size(); ++c) {
          if (rows_[g][c].level > level || of[c] >= of[g]) continue;
          of[g] = of[c];
          changed = true;
        }
      }
    }
    return of;
  }

  void add_buses() {
    const double GBps = pcie_x16_GBps(pcie_generation(model_->sm));
    const std::vector<std::size_t> bridge_of = clusters(Level::bridge);
    const std::vector<std::size_t> cpu_of = clusters(Level::cpu);
    std::map<std::size_t, int> cpus;
    std::map<std::size_t, int> bridges;
    for (std::size_t g = 0; g < rows_.size(); ++g) {
      if (!cpus.contains(cpu_of[g])) {
        const int cpu = add_place(Machine::PlaceKind::cpu, fmt::format("cpu{}", cpus.size()));
        for (const auto& [other, place] : cpus) machine_.wires.push_back({place, cpu, GBps, true});
        cpus[cpu_of[g]] = cpu;
      }
      const int cpu = cpus.at(cpu_of[g]);
      int above = cpu;
      if (std::ranges::count(bridge_of, bridge_of[g]) > 1) {
        if (!bridges.contains(bridge_of[g])) {
          bridges[bridge_of[g]] = add_place(Machine::PlaceKind::bridge, fmt::format("pci{}", bridges.size()));
          machine_.wires.push_back({bridges.at(bridge_of[g]), cpu, GBps});
        }
        above = bridges.at(bridge_of[g]);
      }
      machine_.wires.push_back({machine_.gpus[g], above, GBps});
    }
  }

  const std::string& what_;
  int line_ = 0;
  const GpuModel* model_ = nullptr;
  std::size_t named_ = 0;
  std::vector<std::string> columns_ = {};
  std::vector<std::vector<Cell>> rows_ = {};
  Machine machine_ = {};
};

}  // namespace

Machine parse_nvidia_smi(const std::string& text, const std::string& what) {
  return SmiReader(what).read(text);
}

Machine parse_machine(const std::string& text, const std::string& what) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const bool is_xml = begin != std::string::npos && text[begin] == '<';
  return is_xml ? parse_nccl_xml(text, what) : parse_nvidia_smi(text, what);
}

}  // namespace rondo
