#include <algorithm>
#include <limits>
#include <memory>

#include "cardinality.hpp"
#include "rondo/core/index.hpp"
#include "rondo/engines/synchronous.hpp"

namespace rondo {
namespace {

constexpr int kNoStep = std::numeric_limits<int>::max() / 4;

/// When the chunks of a datum can first be at a GPU, and when they have to be there to be of use.
struct Window {
  int first = kNoStep;
  int last = -1;
  bool is_open() const { return first <= last; }
};

/// Arcs on a shortest way from GPU to GPU.
std::vector<std::vector<int>> distances(const StepInstance& instance) {
  const std::size_t n = index(instance.num_gpus);
  std::vector<std::vector<int>> all(n, std::vector<int>(n, kNoStep));
  for (std::size_t g = 0; g < n; ++g) {
    all[g][g] = 0;
    bool grows = true;
    while (grows) {
      grows = false;
      for (const StepArc& arc : instance.arcs) {
        const int further = all[g][index(arc.from)] + 1;
        if (further >= all[g][index(arc.to)]) continue;
        all[g][index(arc.to)] = further;
        grows = true;
      }
    }
  }
  return all;
}

/// The variables of one chunk.
struct ChunkVariables {
  /// By GPU and step: there once the step has ended; 0 outside of the window.
  std::vector<std::vector<int>> held;
  /// By arc and step: sent in it; 0 where it is of no use.
  std::vector<std::vector<int>> sent;
};

class Encoder {
 public:
  Encoder(const StepInstance& instance, const StepTurn* turn)
      : in_(instance), turn_(turn), distance_(distances(instance)) {}

  StepFormula encode() {
    make_rounds();
    const std::size_t copies = index(in_.chunks);
    chunks_.resize(in_.data.size() * copies);
    for (std::size_t d = 0; d < in_.data.size(); ++d) {
      if (!chunks_[d * copies].sent.empty()) continue;  // an image
      const StepDatum& datum = in_.data[d];
      const std::vector<Window> windows = windows_of(datum);
      for (std::size_t k = 0; k < copies; ++k) add_chunk(datum, windows, chunks_[d * copies + k]);
      for (std::size_t k = 0; k + 1 < copies; ++k) put_in_order(datum, windows, d * copies + k);
      if (turn_ != nullptr) add_images(d);
    }
    for (std::size_t b = 0; b < in_.bounds.size(); ++b) {
      if (turn_ != nullptr && !turn_->is_first_bound[b]) continue;
      for (int s = 0; s < in_.steps; ++s) add_bound(in_.bounds[b], s);
    }
    return {std::move(cnf_), decoder()};
  }

 private:
  std::vector<Window> windows_of(const StepDatum& datum) const {
    std::vector<Window> windows(index(in_.num_gpus));
    for (std::size_t g = 0; g < windows.size(); ++g) {
      windows[g].first = distance_[index(datum.origin)][g];
      for (const int wanted : datum.wanted) {
        windows[g].last = std::max(windows[g].last, in_.steps - distance_[g][index(wanted)]);
      }
    }
    windows[index(datum.origin)] = {0, 0};
    return windows;
  }

  /// r_s is 1 and as many as are true of the variables of the step.
  void make_rounds() {
    const int extra = in_.rounds - in_.steps;
    std::vector<int> all;
    for (int s = 0; s < in_.steps; ++s) {
      std::vector<int>& more = more_rounds_.emplace_back();
      for (int i = 0; i < extra; ++i) {
        more.push_back(cnf_.new_variable());
        if (i > 0) cnf_.add({-more[index(i)], more[index(i - 1)]});
      }
      all.insert(all.end(), more.begin(), more.end());
    }
    const std::vector<int> total = count_true(cnf_, all, extra + 1);
    if (std::ssize(total) > extra) cnf_.add({-total.back()});
  }

  /// What the images of a datum's chunks do are the images of what those do.
  void add_images(std::size_t datum) {
    const std::size_t copies = index(in_.chunks);
    for (std::size_t d = datum; turn_->datum[d] != static_cast<int>(datum); d = index(turn_->datum[d])) {
      for (std::size_t k = 0; k < copies; ++k) {
        const ChunkVariables& chunk = chunks_[d * copies + k];
        ChunkVariables& image = chunks_[index(turn_->datum[d]) * copies + k];
        image.held.resize(chunk.held.size());
        image.sent.resize(chunk.sent.size());
        for (std::size_t g = 0; g < chunk.held.size(); ++g) image.held[index(turn_->gpu[g])] = chunk.held[g];
        for (std::size_t a = 0; a < chunk.sent.size(); ++a) image.sent[index(turn_->arc[a])] = chunk.sent[a];
      }
    }
  }

  void add_chunk(const StepDatum& datum, const std::vector<Window>& windows, ChunkVariables& chunk) {
    chunk.held.assign(index(in_.num_gpus), std::vector<int>(index(in_.steps + 1), 0));
    chunk.sent.assign(in_.arcs.size(), std::vector<int>(index(in_.steps + 1), 0));
    for (int g = 0; g < in_.num_gpus; ++g) {
      const Window& window = windows[index(g)];
      const bool is_wanted = std::ranges::find(datum.wanted, g) != datum.wanted.end();
      if (is_wanted && !window.is_open()) cnf_.add({});
      if (g == datum.origin || !window.is_open()) continue;
      std::vector<int>& held = chunk.held[index(g)];
      for (int s = window.first; s <= window.last; ++s) {
        held[index(s)] = cnf_.new_variable();
        if (s > window.first) cnf_.add({-held[index(s - 1)], held[index(s)]});
      }
      if (is_wanted) cnf_.add({held[index(window.last)]});
    }
    for (std::size_t a = 0; a < in_.arcs.size(); ++a) {
      const StepArc& arc = in_.arcs[a];
      const Window& from = windows[index(arc.from)];
      const Window& to = windows[index(arc.to)];
      if (arc.to == datum.origin || !from.is_open() || !to.is_open()) continue;
      for (int s = std::max(from.first + 1, to.first); s <= to.last; ++s) {
        const int sent = chunk.sent[a][index(s)] = cnf_.new_variable();
        const std::vector<int>& held = chunk.held[index(arc.to)];
        cnf_.add({-sent, held[index(s)]});
        if (s > to.first) cnf_.add({-sent, -held[index(s - 1)]});
        if (arc.from != datum.origin) {
          cnf_.add({-sent, chunk.held[index(arc.from)][index(std::min(s - 1, from.last))]});
        }
      }
    }
    std::vector<std::vector<int>> into(index(in_.num_gpus));
    for (std::size_t a = 0; a < in_.arcs.size(); ++a)
      into[index(in_.arcs[a].to)].push_back(static_cast<int>(a));
    for (int g = 0; g < in_.num_gpus; ++g) {
      const Window& window = windows[index(g)];
      if (g == datum.origin || !window.is_open()) continue;
      const std::vector<int>& held = chunk.held[index(g)];
      for (int s = window.first; s <= window.last; ++s) {
        std::vector<int> clause{-held[index(s)]};
        if (s > window.first) clause.push_back(held[index(s - 1)]);
        for (const int a : into[index(g)]) {
          const int sent = chunk.sent[index(a)][index(s)];
          if (sent == 0) continue;
          for (std::size_t other = s > window.first ? 2 : 1; other < clause.size(); ++other)
            cnf_.add({-sent, -clause[other]});
          clause.push_back(sent);
        }
        cnf_.add(clause);
      }
    }
  }

  /// Chunks that are alike go into one GPU that wants them in the order of arcs and steps.
  void put_in_order(const StepDatum& datum, const std::vector<Window>& windows, std::size_t c) {
    int at = datum.wanted.front();
    for (const int g : datum.wanted) {
      if (windows[index(g)].first > windows[index(at)].first) at = g;
    }
    int before = 0;  // the c-th chunk is here already
    for (std::size_t a = 0; a < in_.arcs.size(); ++a) {
      if (in_.arcs[a].to != at) continue;
      for (int s = 1; s <= in_.steps; ++s) {
        const int sent = chunks_[c].sent[a][index(s)];
        if (sent == 0) continue;
        const int upto = cnf_.new_variable();
        if (before != 0)
          cnf_.add({-upto, before, sent});
        else
          cnf_.add({-upto, sent});
        cnf_.add({-chunks_[c + 1].sent[a][index(s)], upto});
        before = upto;
      }
    }
  }

  void add_bound(const StepBound& bound, int s) {
    std::vector<int> sent;
    for (const ChunkVariables& chunk : chunks_) {
      for (const int a : bound.arcs) {
        const int here = chunk.sent[index(a)][index(s + 1)];
        if (here != 0) sent.push_back(here);
      }
    }
    const int extra = in_.rounds - in_.steps;
    const std::vector<int> total = count_true(cnf_, sent, bound.chunks * (1 + extra) + 1);
    for (int i = 0; i <= extra; ++i) {
      const std::size_t over = index(bound.chunks * (1 + i));
      if (over >= total.size()) break;
      if (i < extra)
        cnf_.add({-total[over], more_rounds_[index(s)][index(i)]});
      else
        cnf_.add({-total[over]});
    }
  }

  std::function<StepPlan(const std::vector<char>&)> decoder() const {
    return [chunks = chunks_, more = more_rounds_](const std::vector<char>& value) {
      StepPlan plan;
      for (const std::vector<int>& step : more) {
        plan.rounds.push_back(1);
        for (const int variable : step) plan.rounds.back() += value[index(variable)];
      }
      for (std::size_t c = 0; c < chunks.size(); ++c) {
        for (std::size_t a = 0; a < chunks[c].sent.size(); ++a) {
          for (std::size_t s = 1; s < chunks[c].sent[a].size(); ++s) {
            const int variable = chunks[c].sent[a][s];
            if (variable != 0 && value[index(variable)] != 0)
              plan.sends.push_back({static_cast<int>(c), static_cast<int>(a), static_cast<int>(s) - 1});
          }
        }
      }
      std::ranges::stable_sort(plan.sends, {}, &StepSend::step);
      return plan;
    };
  }

  const StepInstance& in_;
  const StepTurn* turn_;
  std::vector<std::vector<int>> distance_;
  Cnf cnf_;
  std::vector<std::vector<int>> more_rounds_;  ///< by step
  std::vector<ChunkVariables> chunks_;
};

}  // namespace

int least_steps(const StepInstance& instance) {
  const std::vector<std::vector<int>> distance = distances(instance);
  int most = 0;
  for (const StepDatum& datum : instance.data) {
    for (const int wanted : datum.wanted) most = std::max(most, distance[index(datum.origin)][index(wanted)]);
  }
  return most;
}

StepFormula encode_steps(const StepInstance& instance, const StepTurn* turn) {
  return Encoder(instance, turn).encode();
}

}  // namespace rondo
