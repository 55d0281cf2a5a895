#pragma once

#include <optional>
#include <string>
#include <string_view>

/// What links carry, as NCCL (src/graph/topo.h, topo.cc) and RCCL count it: what a program gets out of them,
/// about four fifths of the line rate. FORMATS.md 6 has both.
namespace rondo {

/// GB/s of one NVLink, one way, by compute capability ("90" is 9.0); nothing for GPUs that have none or
/// are not known.
std::optional<double> nvlink_GBps(int sm);
/// Of one Infinity Fabric link, by gcn ("gfx942").
std::optional<double> xgmi_GBps(std::string_view gcn);

/// GB/s of a PCIe link, one way, by the speed as Linux writes it ("32.0 GT/s PCIe") and its lanes; nothing
/// where these mean that it is not known (no lanes, no speed, or the 2.5 GT/s of virtual bridges).
std::optional<double> pcie_GBps(std::string_view speed, int width);
/// Of sixteen lanes of a generation of PCIe, 3 to 6.
double pcie_x16_GBps(int generation);
/// The generation that a GPU of this compute capability has.
int pcie_generation(int sm);

/// Between two CPUs of a machine, one way; nothing for an unknown make.
std::optional<double> cpu_link_GBps(std::string_view arch, std::string_view vendor, int family, int model);

/// Compute capability by the name that nvidia-smi gives ("NVIDIA H100 80GB HBM3"), and its NVLinks.
struct GpuModel {
  std::string_view name;  ///< part of the full name
  int sm;
  int nvlinks;
};
const GpuModel* find_gpu_model(std::string_view full_name);

/// NCCL's latencies of its fastest protocol (src/graph/tuning.cc): GPU to GPU.
inline constexpr double kNvLinkUs = 0.6;
inline constexpr double kPcieUs = 1.0;
inline constexpr double kNicUs = 0.85;    ///< NIC to switch: a network takes 2.7 in all, PCIe with it
inline constexpr double kSwitchUs = 0.3;  ///< a further switch of a network

}  // namespace rondo
