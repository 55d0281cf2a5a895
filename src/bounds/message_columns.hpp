#pragma once

#include <vector>

#include "priced_rows.hpp"
#include "rondo/core/cheapest_messages.hpp"
#include "rondo/model/column_master.hpp"
#include "rondo/model/deadline.hpp"

namespace rondo {

/// What has to be where; of destinations or sources that are alike the first one's bytes, times their number.
struct MessageProblem {
  const Topology& topology;
  GpuId gpu;                        ///< of the certificates; invalid: all of unicast demand
  std::vector<WantedBytes> wanted;  ///< each of one source
  PricedRows rows;                  ///< alike rows pay the same
};

/// Prices of the rows, period by period; all links and groups earn 1.
struct MessagePrices {
  std::vector<double> of_row = {};
  double payments = 0;   ///< of all bytes, at least
  int times_priced = 0;  ///< until they were found
};

struct MessageColumnOptions {
  std::size_t periods = 0;
  int parts = 1;
  double gap = 0;   ///< of what the best prices have the bytes pay
  int warm_up = 0;  ///< prices by multiplicative weights before the first master
  int max_masters = 0;
};

/// The certificate of prices for the periods, which are equally long.
MessagePricesCertificate message_certificate(const MessageProblem& problem, const MessagePrices& prices,
                                             std::size_t periods, int parts, double until_us);

/// Prices by which the bytes pay as much as they can be made to for being there before `until_us`, by column
/// generation: the cheapest messages of all bytes at some prices are columns of a master whose duals, drawn
/// towards the best prices so far (Wentges 1997), are the next ones. `start`: prices to begin with; empty:
/// each row earns the same. Infinite payments and no prices where some bytes cannot be there in time.
MessagePrices price_messages(const MessageProblem& problem, double until_us, const MessagePrices& start,
                             const MessageColumnOptions& options, const MakeColumnMaster& make_master,
                             const Deadline& deadline);

}  // namespace rondo
