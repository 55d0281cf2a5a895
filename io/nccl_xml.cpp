#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "link_rates.hpp"
#include "rondo/core/error.hpp"
#include "rondo/io/machine.hpp"

namespace rondo {
namespace {

constexpr std::size_t kMostPlaces = 100'000;
constexpr int kMostDepth = 64;
constexpr int kMostLinks = 1024;  ///< NVLinks between two ends

/// Of a PCIe device whose class says what hangs on it.
constexpr const char* kBridgeClass = "0x0604";
constexpr const char* kSwitchClass = "0x0680";  ///< of NVSwitches; 0x068001 is a CPU

struct Gpu {
  int place;
  pugi::xml_node xml;
  int rank;  ///< -1: not told
  int dev;
};

class NcclReader {
 public:
  NcclReader(const std::string& text, const std::string& what) : text_(text), what_(what) {}

  Machine read() {
    pugi::xml_document document;
    const pugi::xml_parse_result parsed = document.load_buffer(text_.data(), text_.size());
    if (!parsed) refuse_at(parsed.offset, fmt::format("this is no XML: {}", parsed.description()));
    const pugi::xml_node system = document.child("system");
    if (!system) refuse_at(0, "there is no element 'system'; a file of NCCL_TOPO_DUMP_FILE begins with one");
    for (const pugi::xml_node cpu : system.children("cpu")) read_cpu(cpu);
    number_gpus(system);
    for (const Gpu& gpu : gpus_) read_gpu_links(gpu);
    join_cpus();
    machine_.name = what_.substr(what_.find_last_of('/') + 1);
    machine_.name = machine_.name.substr(0, machine_.name.find(".xml"));
    machine_.source = system.attribute("source").value();
    if (machine_.source.empty())
      machine_.source = fmt::format("{}; bandwidths and latencies as NCCL counts them", what_);
    return std::move(machine_);
  }

 private:
  struct Cpu {
    int place;
    std::optional<double> GBps;
  };

  std::string place_of(std::ptrdiff_t offset) const {
    const auto at = text_.begin() + std::clamp<std::ptrdiff_t>(offset, 0, std::ssize(text_));
    return fmt::format("{} line {}", what_, 1 + std::count(text_.begin(), at, '\n'));
  }
  [[noreturn]] void refuse_at(std::ptrdiff_t offset, const std::string& why) const {
    throw Error(ExitCode::bad_data, fmt::format("{}: {}", place_of(offset), why));
  }
  [[noreturn]] void refuse(const pugi::xml_node& node, const std::string& why) const {
    refuse_at(node.offset_debug(), why);
  }

  /// -1 where it is absent.
  int whole(const pugi::xml_node& node, const char* name, int most) const {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) return -1;
    const std::string text = attribute.value();
    // NCCL writes -1 for what it does not know.
    const bool digits = !text.empty() && text.size() < 10 &&
                        text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) == std::string::npos &&
                        text != "-";
    const int value = digits ? std::stoi(text) : -2;
    if (value < -1 || value > most) {
      refuse(node,
             fmt::format("{} of '{}' is '{}'; it is a whole number up to {}", name, node.name(), text, most));
    }
    return value;
  }

  std::string bus_of(const pugi::xml_node& node, const char* name) const {
    std::string text = node.attribute(name).value();
    if (text.empty()) refuse(node, fmt::format("'{}' has no {}", node.name(), name));
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return text;
  }

  int add_place(Machine::PlaceKind kind, std::string name, int host, const pugi::xml_node& node) {
    if (machine_.places.size() >= kMostPlaces)
      refuse(node, fmt::format("there are more than {} devices", kMostPlaces));
    machine_.places.push_back({kind, std::move(name), host});
    return static_cast<int>(machine_.places.size()) - 1;
  }
  void join(int a, int b, std::optional<double> GBps, bool between_cpus = false) {
    if (GBps) machine_.wires.push_back({a, b, *GBps, between_cpus});
  }

  void read_cpu(const pugi::xml_node& xml) {
    const std::string hash = xml.attribute("host_hash").value();
    const auto [entry, is_new] = hosts_.insert({hash, static_cast<int>(hosts_.size())});
    host_ = entry->second;
    const int numa = whole(xml, "numaid", 1 << 20);
    const int cpu = add_place(Machine::PlaceKind::cpu, fmt::format("cpu{}", std::max(numa, 0)), host_, xml);
    cpus_[host_].push_back(
        {cpu, cpu_link_GBps(xml.attribute("arch").value(), xml.attribute("vendor").value(),
                            whole(xml, "familyid", 1 << 20), whole(xml, "modelid", 1 << 20))});
    for (const pugi::xml_node child : xml.children("pci")) read_pci(child, cpu, 0);
    for (const pugi::xml_node child : xml.children("nic")) {
      // Without a place on a bus: as near as the CPU.
      read_nic(child, cpu, std::nullopt);
    }
  }

  void read_pci(const pugi::xml_node& xml, int above, int depth) {
    if (depth > kMostDepth) refuse(xml, fmt::format("bridges are nested deeper than {}", kMostDepth));
    const std::string bus = bus_of(xml, "busid");
    const bool is_bridge = std::string_view(xml.attribute("class").value()).starts_with(kBridgeClass);
    std::optional<double> GBps =
        pcie_GBps(xml.attribute("link_speed").value(), whole(xml, "link_width", 1024));
    bool is_device = false;
    for (const pugi::xml_node child : xml.children("gpu")) {
      is_device = true;
      read_gpu(child, bus, above, GBps);
    }
    if (const pugi::xml_node nic = xml.child("nic")) {
      is_device = true;
      read_nic(nic, above, GBps);
    }
    if (is_device) return;
    const bool has_devices = !xml.children("pci").empty();
    if (!is_bridge && !has_devices) return;
    // A bridge whose figures say nothing is left out: what hangs on it hangs on what is above.
    int bridge = above;
    if (GBps) {
      bridge = add_place(Machine::PlaceKind::bridge, "pci " + bus, host_, xml);
      join(bridge, above, GBps);
    }
    for (const pugi::xml_node child : xml.children("pci")) read_pci(child, bridge, depth + 1);
  }

  void read_gpu(const pugi::xml_node& xml, const std::string& bus, int above, std::optional<double> GBps) {
    const int sm = whole(xml, "sm", 10'000);
    // Virtual machines give their GPUs 2.5 GT/s or no lanes: then it is what such a GPU has.
    if (!GBps) GBps = pcie_x16_GBps(sm > 0 ? pcie_generation(sm) : 5);
    const int gpu = add_place(Machine::PlaceKind::gpu, "", host_, xml);
    if (const auto [other, is_new] = gpu_at_.insert({{host_, bus}, gpu}); !is_new) {
      refuse(xml, fmt::format("a second GPU has bus id {}; each has one of its own (partitions of one GPU "
                              "are not read)",
                              bus));
    }
    join(gpu, above, GBps);
    cpu_above_[gpu] = cpus_[host_].back().place;
    gpus_.push_back({gpu, xml, whole(xml, "rank", 1 << 24), whole(xml, "dev", 1 << 24)});
  }

  void read_nic(const pugi::xml_node& xml, int above, std::optional<double> GBps) {
    const auto nets = xml.children("net");
    if (nets.empty())
      refuse(
          xml,
          "this nic has no net, so its speed is not known; add <net speed=\"...\"/>, or leave the nic out");
    const int nic = add_place(Machine::PlaceKind::nic, fmt::format("nic{}", num_nics_++), host_, xml);
    double total = 0;
    for (const pugi::xml_node net : nets) {
      const int mbps = whole(net, "speed", 100'000'000);
      const double latency = net.attribute("latency").as_double(0);
      if (!(latency >= 0 && latency < 1e6))
        refuse(net, fmt::format("latency is '{}'; it is microseconds, 0 or more",
                                net.attribute("latency").value()));
      machine_.ports.push_back({nic, net.attribute("name").value(), mbps > 0 ? mbps / 8000.0 : 0, latency,
                                place_of(net.offset_debug())});
      total += machine_.ports.back().GBps;
    }
    // What the bus of a NIC carries is not known on virtual machines; its nets then limit it.
    if (!GBps && total > 0) GBps = total;
    join(nic, above, GBps);
  }

  /// By rank, as NCCL does; where none is told, by the device's number.
  void number_gpus(const pugi::xml_node& system) {
    const bool ranked = std::ranges::any_of(gpus_, [](const Gpu& gpu) { return gpu.rank >= 0; });
    if (ranked) std::erase_if(gpus_, [](const Gpu& gpu) { return gpu.rank < 0; });
    const auto number = [&](const Gpu& gpu) { return ranked ? gpu.rank : gpu.dev; };
    std::ranges::stable_sort(gpus_, [&](const Gpu& a, const Gpu& b) {
      const int host_a = machine_.places[static_cast<std::size_t>(a.place)].host;
      const int host_b = machine_.places[static_cast<std::size_t>(b.place)].host;
      if (ranked || host_a == host_b) return number(a) < number(b);
      return host_a < host_b;
    });
    if (gpus_.size() < 2) {
      refuse(system, fmt::format("there {}; a collective needs two GPUs",
                                 gpus_.empty() ? "is no GPU" : "is one GPU"));
    }
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      if (ranked && g > 0 && gpus_[g].rank == gpus_[g - 1].rank)
        refuse(gpus_[g].xml, fmt::format("rank {} is given twice", gpus_[g].rank));
      machine_.gpus.push_back(gpus_[g].place);
      machine_.places[static_cast<std::size_t>(gpus_[g].place)].name = fmt::format("g{}", g);
    }
  }

  void read_gpu_links(const Gpu& gpu) {
    for (const pugi::xml_node link : gpu.xml.children()) {
      const std::string_view name = link.name();
      if (name == "nvlink" || name == "xgmi") read_nvlink(gpu, link);
      if (name != "c2c") continue;
      const int count = whole(link, "count", kMostLinks);
      const int mbps = whole(link, "bw", 100'000'000);
      if (count > 0 && mbps > 0) join(gpu.place, cpu_above_[gpu.place], count * (mbps / 1000.0));
    }
  }

  double link_GBps(const Gpu& gpu, const pugi::xml_node& link) const {
    if (std::string_view(link.name()) == "xgmi" || gpu.xml.attribute("gcn")) {
      const std::string gcn = gpu.xml.attribute("gcn").value();
      if (const auto GBps = xgmi_GBps(gcn)) return *GBps;
      refuse(gpu.xml, fmt::format("gcn is '{}', whose Infinity Fabric is not known here; known are gfx906, "
                                  "gfx908, gfx90a, gfx94x and gfx95x",
                                  gcn));
    }
    const int sm = whole(gpu.xml, "sm", 10'000);
    if (const auto GBps = nvlink_GBps(sm)) return *GBps;
    refuse(gpu.xml,
           fmt::format("sm is '{}', whose generation of NVLink is not known here; known are 60, 61, 62, "
                       "70, 72, 80, 86, 90 and 100 to 109",
                       gpu.xml.attribute("sm").value()));
  }

  void read_nvlink(const Gpu& gpu, const pugi::xml_node& link) {
    const int count = link.attribute("count") ? whole(link, "count", kMostLinks) : 1;
    if (count <= 0)
      refuse(link,
             fmt::format("count is '{}'; it is how many links there are", link.attribute("count").value()));
    const double GBps = count * link_GBps(gpu, link);
    const std::string target_class = link.attribute("tclass").value();
    if (target_class == "0x068001") {
      join(gpu.place, cpu_above_[gpu.place], GBps);
    } else if (target_class.starts_with(kSwitchClass)) {
      machine_.nvlinks.push_back({gpu.place, std::nullopt, GBps});
    } else if (target_class.starts_with("0x03") || target_class.starts_with("0x12")) {
      const int host = machine_.places[static_cast<std::size_t>(gpu.place)].host;
      const auto target = gpu_at_.find({host, bus_of(link, "target")});
      // Dumps name GPUs that take no part.
      if (target == gpu_at_.end() || std::ranges::find(machine_.gpus, target->second) == machine_.gpus.end())
        return;
      if (target->second == gpu.place) refuse(link, "this link leads from a GPU to itself");
      machine_.nvlinks.push_back({gpu.place, target->second, GBps});
    } else {
      refuse(link, fmt::format("tclass is '{}'; it is 0x03... (GPU), 0x068000 (switch) or 0x068001 (CPU)",
                               target_class));
    }
  }

  void join_cpus() {
    for (const auto& [host, cpus] : cpus_) {
      for (std::size_t i = 0; i < cpus.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) join(cpus[k].place, cpus[i].place, cpus[k].GBps, true);
      }
    }
  }

  const std::string& text_;
  const std::string& what_;
  Machine machine_ = {};
  std::map<std::string, int> hosts_ = {};
  std::map<int, std::vector<Cpu>> cpus_ = {};
  std::map<std::pair<int, std::string>, int> gpu_at_ = {};
  std::map<int, int> cpu_above_ = {};
  std::vector<Gpu> gpus_ = {};
  int host_ = 0;
  int num_nics_ = 0;
};

}  // namespace

Machine parse_nccl_xml(const std::string& text, const std::string& what) {
  return NcclReader(text, what).read();
}

}  // namespace rondo
