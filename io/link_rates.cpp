#include "link_rates.hpp"

#include <array>
#include <cmath>

namespace rondo {
namespace {

/// The longer names stand before those that they contain.
constexpr std::array kGpuModels{
    GpuModel{"GB300", 103, 18}, GpuModel{"GB200", 100, 18}, GpuModel{"B300", 103, 18},
    GpuModel{"B200", 100, 18},  GpuModel{"H200", 90, 18},   GpuModel{"H100 PCIe", 90, 12},
    GpuModel{"H100", 90, 18},   GpuModel{"H800", 90, 8},    GpuModel{"H20", 90, 18},
    GpuModel{"A100", 80, 12},   GpuModel{"A800", 80, 8},    GpuModel{"V100", 70, 6},
    GpuModel{"P100", 60, 4},    GpuModel{"A40", 86, 4},     GpuModel{"A10", 86, 0},
    GpuModel{"L40", 89, 0},     GpuModel{"L4", 89, 0},      GpuModel{"T4", 75, 0}};

}  // namespace

std::optional<double> nvlink_GBps(int sm) {
  if (sm >= 100 && sm < 110) return 40.1;
  if (sm == 90) return 20.6;
  if (sm == 86) return 12.0;
  if (sm == 70 || sm == 72 || sm == 80) return 20.0;
  if (sm >= 60 && sm < 70) return 18.0;
  return std::nullopt;
}

std::optional<double> xgmi_GBps(std::string_view gcn) {
  if (gcn.starts_with("gfx94") || gcn.starts_with("gfx95")) return 48.0;
  if (gcn.starts_with("gfx90a")) return 36.0;
  if (gcn.starts_with("gfx906") || gcn.starts_with("gfx908")) return 24.0;
  return std::nullopt;
}

std::optional<double> pcie_GBps(std::string_view speed, int width) {
  // GT/s, and GB/s of a lane.
  constexpr std::array<std::pair<std::string_view, double>, 5> kLanes{
      {{"5", 0.375}, {"8", 0.75}, {"16", 1.5}, {"32", 3.0}, {"64", 6.0}}};
  if (width <= 0) return std::nullopt;
  std::string_view number = speed.substr(0, speed.find(' '));
  if (number.ends_with(".0")) number.remove_suffix(2);
  for (const auto& [gigatransfers, lane] : kLanes) {
    if (number == gigatransfers) return lane * width;
  }
  return std::nullopt;
}

double pcie_x16_GBps(int generation) {
  return 12.0 * std::pow(2.0, generation - 3);
}

int pcie_generation(int sm) {
  if (sm >= 90) return 5;
  return sm >= 80 ? 4 : 3;
}

std::optional<double> cpu_link_GBps(std::string_view arch, std::string_view vendor, int family, int model) {
  if (arch == "ppc64") return 32.0;
  if (arch == "arm64") return 6.0;
  if (arch != "x86_64") return std::nullopt;
  if (vendor == "AuthenticAMD") return 16.0;
  if (vendor == "GenuineIntel") {
    if (family != 6 || model < 0x55) return 6.0;
    if (model < 0x8f) return 10.0;
    return model < 0xcf ? 22.0 : 40.0;
  }
  if (vendor == "CentaurHauls" || vendor == "  Shanghai  ") return family == 7 && model == 0x5b ? 9.0 : 6.0;
  return std::nullopt;
}

const GpuModel* find_gpu_model(std::string_view full_name) {
  for (const GpuModel& model : kGpuModels) {
    if (full_name.find(model.name) != std::string_view::npos) return &model;
  }
  return nullptr;
}

}  // namespace rondo
