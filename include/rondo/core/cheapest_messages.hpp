#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "rondo/core/certificate.hpp"

namespace rondo {

/// A message on its way from a GPU or a store-and-forward switch over cut-through switches alone to the next
/// one. It keeps each of its links from start to end, as much later as the link's latency is from the start,
/// and a byte of it takes 1 / (end_us - start_us - message_us) of the bandwidth of each as long.
struct PaidMessage {
  struct Step {
    LinkId link;
    double latency_us = 0;  ///< of the links before it
  };

  std::vector<Step> steps = {};
  double message_us = 0;  ///< the greatest of any of its links
  double start_us = 0;
  double end_us = 0;

  double bytes_us() const { return end_us - start_us - message_us; }
};

/// What counts in a certificate: bytes that a GPU wants. Of data there is one source; of a sum each source's
/// part of each byte has to come, so that it pays what the source does that pays most.
struct WantedBytes {
  struct Source {
    GpuId gpu;
    double from_us = 0;
    friend auto operator<=>(const Source&, const Source&) = default;
  };

  GpuId destination;
  std::vector<Source> sources = {};
  double bytes = 0;
};

/// What a byte has to pay at least by prices of messages (FORMATS.md 3, `message_prices`), to 1e-10 or so,
/// and by which messages. Keeps references to both.
class CheapestMessages {
 public:
  /// Throws Error(bad_data) for prices and parts that are none, and for more ways and times than can be
  /// looked at.
  CheapestMessages(const Topology& topology, const MessagePricesCertificate& certificate);
  ~CheapestMessages();
  CheapestMessages(const CheapestMessages&) = delete;
  CheapestMessages& operator=(const CheapestMessages&) = delete;

  /// Ways times pairs of times, which towards() looks at.
  double work() const;
  /// What all links and groups earn that are never idle.
  double earned() const;

  /// What follows is of bytes for this GPU.
  void towards(GpuId destination);
  /// Of a byte that is there from a time on; infinite where it cannot be in time.
  double least_payment(GpuId source, double from_us) const;
  /// Of all of the bytes, which stand by destination. Throws Error(bad_data) where they are for more GPUs
  /// than can be looked at.
  double payments(const std::vector<WantedBytes>& wanted);
  /// Some messages that cost as much, in their order; none where it cannot be in time.
  std::vector<PaidMessage> messages(GpuId source, double from_us) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
  const Topology& topology_;
};

/// The most that CheapestMessages::work() may be; about 2 s.
inline constexpr double kMostMessageWork = 2e9;

/// By destination. Data that several GPUs have, and sums that are partly made, do not count. An invalid GPU:
/// all of unicast demand. Throws Error(bad_data) for another one that does not exist, and for all of other
/// demand.
std::vector<WantedBytes> wanted_bytes(const Topology& topology, const Demand& demand, GpuId gpu);

}  // namespace rondo
