#pragma once

#include <string>
#include <vector>

#include "by_hand.hpp"
#include "rondo/core/certificate.hpp"
#include "rondo/core/error.hpp"

namespace rondo {

inline CutCertificate cut(const std::vector<int>& ids, double bytes) {
  CutCertificate result{{}, bytes};
  for (const int id : ids) result.nodes.emplace_back(id);
  return result;
}

inline void expect_refused(const Topology& topology, const Demand& demand, const Certificate& certificate,
                           const std::string& word, ExitCode code = ExitCode::bad_data) {
  try {
    bound_of(topology, demand, certificate);
    FAIL() << "accepted; expected: " << word;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

/// 0 -> 1 -> 2 -> 3 -> 0, 10 GB/s, 1 us. A contribution of 1 MB takes 100 us.
inline Topology one_way_ring() {
  Fabric fabric(4);
  for (int g = 0; g < 4; ++g) fabric.link(g, (g + 1) % 4, 10, 1);
  return fabric.build();
}

}  // namespace rondo
