#pragma once

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "rondo/msccl/program.hpp"

namespace rondo {

/// A send and the receive that meets it.
struct Message {
  int src = -1, src_tb = -1, src_step = -1;
  int dst = -1, dst_tb = -1, dst_step = -1;
  msccl::Range landing = {};  ///< where it is put at dst
  /// Of the connection: the program's, of a copy that a switch makes -1 - the threadblock that stores it.
  int channel = 0;

  std::tuple<int, int, int> connection() const { return {src, dst, channel}; }
};

/// Where messages land that nothing is added to.
enum class Landing {
  in_place,  ///< where they belong: whatever was there before is of no use any more once they can be sent
  apart,  ///< in scratch, where another step of the receiver writes to the same place: it copies them itself
};

/// The messages of a program: the n-th send of a connection meets its n-th receive.
struct PlanMessages {
  using Step = std::tuple<int, int, int>;  ///< GPU, threadblock and number

  std::vector<Message> all = {};
  std::map<Step, int> sent_by = {};
  std::map<Step, int> received_by = {};
  std::vector<int> scratch = {};  ///< per GPU: chunks, with those where sums await what they are added to
};
PlanMessages messages_of(const msccl::Program& program, Landing landing);

/// The channels of a plan: a connection has one of its own, on which its receiver says that it has begun and
/// its sender that data is there.
struct PlanChannels {
  using Connection = std::tuple<int, int, int>;  ///< source, destination and Message::channel

  std::map<Connection, int> send = {};                      ///< among the source's channels of its type
  std::map<Connection, int> receive = {};                   ///< among the destination's
  std::vector<std::array<std::vector<int>, 2>> peers = {};  ///< per GPU, of memory and of port channels
};
/// `node_of`: one a GPU; between nodes channels are ports.
PlanChannels channels_of(const msccl::Program& program, const std::vector<Message>& messages,
                         const std::vector<int>& node_of);

}  // namespace rondo
