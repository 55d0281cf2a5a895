#include "alone.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/core/error.hpp"

namespace rondo::profile {
namespace {

constexpr int kRepetitions = 10;  ///< the first finds things cold and does not count
constexpr std::int64_t kShortBytes = 8;
constexpr double kNothingUs = 1e-6;

/// One message of many sizes tells the bandwidth, several short ones what each costs.
std::vector<Flow> flows_of(int from, int to, double max_bytes) {
  std::vector<Flow> flows;
  for (const int messages : {1, 4, 16}) flows.push_back({from, to, messages, kShortBytes});
  for (const double part : {1.0 / 1024, 1.0 / 64, 1.0 / 16, 1.0 / 4, 1.0 / 2, 1.0})
    flows.push_back({from, to, 1, static_cast<std::int64_t>(max_bytes * part)});
  return flows;
}

std::string pair_name(const LinkFigures& link) {
  return fmt::format("rank {} to rank {}", link.from, link.to);
}

constexpr const char* kRemedy =
    "; more --passes, a larger --max-bytes, or ranks that nothing else disturbs (a core each) may tell it";

[[noreturn]] void refuse(const LinkFigures& link, const std::string& what, const Figure& figure,
                         const std::string& unit) {
  throw Error(ExitCode::bad_data,
              fmt::format("{}: the fit gives {} of {:.4g} +- {:.2g} {}, which no link has{}", pair_name(link),
                          what, figure.value, figure.error, unit, kRemedy));
}

/// Within its error of 0 it is 0; further below, no fit.
Figure not_negative(const LinkFigures& link, const std::string& what, Figure figure) {
  if (figure.value < -figure.error - 1e-9) refuse(link, what, figure, "us");
  figure.value = std::max(0.0, figure.value);
  return figure;
}

/// Twice the standard deviation of what passes by themselves give, from their median absolute deviation: a
/// pass that other work disturbed counts as one.
double spread_of(const std::vector<double>& values) {
  constexpr double kDeviationsOfNormal = 1.4826;
  const double middle = median(values);
  std::vector<double> off;
  for (const double value : values) off.push_back(std::abs(value - middle));
  return 2 * kDeviationsOfNormal * median(off);
}

/// The fit of each sample's median over the passes; its error has the scatter around the line and the drift
/// between passes.
LineFit fit_of_passes(const LinkFigures& link, const std::vector<std::vector<TimedMessages>>& passes) {
  std::vector<TimedMessages> middle = passes.front();
  for (std::size_t k = 0; k < middle.size(); ++k) {
    std::vector<double> us;
    for (const std::vector<TimedMessages>& pass : passes) us.push_back(pass[k].us);
    middle[k].us = median(us);
  }
  std::vector<double> constants;
  std::vector<double> messages;
  std::vector<double> bytes;
  try {
    for (const std::vector<TimedMessages>& pass : passes) {
      const LineFit fit = fit_line(pass);
      constants.push_back(fit.constant_us.value);
      messages.push_back(fit.message_us.value);
      bytes.push_back(fit.byte_us.value);
    }
    LineFit fit = fit_line(middle);
    fit.constant_us.error = std::hypot(fit.constant_us.error, spread_of(constants));
    fit.message_us.error = std::hypot(fit.message_us.error, spread_of(messages));
    fit.byte_us.error = std::hypot(fit.byte_us.error, spread_of(bytes));
    return fit;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", pair_name(link), error.what()));
  }
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<LinkFigures> measure_alone(Wire& wire, const ProfileOptions& options) {
  std::vector<LinkFigures> links;
  std::vector<Round> rounds;
  for (int from = 0; from < wire.size(); ++from) {
    for (int to = 0; to < wire.size(); ++to) {
      if (from == to) continue;
      links.push_back({.from = from, .to = to});
      for (const Flow& flow : flows_of(from, to, options.max_bytes)) rounds.push_back({{flow}, kRepetitions});
    }
  }
  const std::size_t kinds = rounds.size() / links.size();
  std::vector<std::vector<std::vector<TimedMessages>>> samples(links.size());
  for (int pass = 0; pass < options.passes; ++pass) {
    options.progress(fmt::format("every pair alone, pass {} of {}", pass + 1, options.passes));
    const auto times = wire.time_us(rounds);
    for (std::size_t l = 0; l < links.size(); ++l) {
      samples[l].emplace_back();
      for (std::size_t k = 0; k < kinds; ++k) {
        const std::size_t at = l * kinds + k;
        const Flow& flow = rounds[at].flows.front();
        const std::vector<double>& taken = times[at].front();
        // What disturbs only ever slows down.
        samples[l].back().push_back({.messages = flow.messages,
                                     .bytes = static_cast<double>(flow.bytes),
                                     .us = *std::min_element(taken.begin() + 1, taken.end())});
      }
    }
  }
  std::vector<LineFit> fits;
  for (std::size_t l = 0; l < links.size(); ++l) {
    LinkFigures& link = links[l];
    const LineFit fit = fit_of_passes(link, samples[l]);
    if (!(fit.byte_us.value > fit.byte_us.error)) {
      const double per_us = 1 / std::abs(fit.byte_us.value);
      refuse(link, "a byte's time", {fit.byte_us.value * 1e6, fit.byte_us.error * 1e6},
             fmt::format("us a MB (about {:.3g} GB/s)", per_us / 1e3));
    }
    link.GBps.value = 1e-3 / fit.byte_us.value;
    link.GBps.error = link.GBps.value * fit.byte_us.error / fit.byte_us.value;
    link.message_us = not_negative(link, "a message cost", fit.message_us);
    // What cannot be told from nothing would keep engines from splitting that free messages allow.
    if (link.message_us.value <= std::max(link.message_us.error, kNothingUs)) link.message_us.value = 0;
    link.answer_us = fit.constant_us.value;
    fits.push_back(fit);
  }
  const auto number_of = [&](int from, int to) {
    return static_cast<std::size_t>(from * (wire.size() - 1) + to - (to > from ? 1 : 0));
  };
  for (std::size_t l = 0; l < links.size(); ++l) {
    // The constant is the way there and, with the message cost of the answer, back; clocks of two ranks do
    // not tell how the two differ.
    const std::size_t back = number_of(links[l].to, links[l].from);
    const auto there_and_back = [&](std::size_t a, std::size_t b) {
      return fits[a].constant_us.value - fits[b].message_us.value;
    };
    links[l].latency_us =
        not_negative(links[l], "a latency",
                     {.value = (there_and_back(l, back) + there_and_back(back, l)) / 4,
                      .error = std::hypot(fits[l].constant_us.error, fits[back].constant_us.error,
                                          fits[l].message_us.error) /
                               2});
  }
  return links;
}

}  // namespace rondo::profile
