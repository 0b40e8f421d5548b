#include "plans/search/lower_bound.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace troupe::plans {

namespace {

struct LeastOfCall {
  double seconds = std::numeric_limits<double>::infinity(); ///< on the path
  double core_s = std::numeric_limits<double>::infinity();
};

LeastOfCall least_of(const SearchSpace::SpaceCall& call) {
  LeastOfCall least;
  const bool adds_all = call.call->kind != CallKind::inference;
  for (const auto& option : call.options) {
    least.seconds
      = std::min(least.seconds, adds_all ? option.total_s() : option.seconds);
    least.core_s = std::min(least.core_s, option.device_s * option.cores);
  }
  return least;
}

/// Core-seconds of an option of a call, by kind of node.
using KindSeconds = std::vector<double>;

/// Returns the share of its devices that a mesh of the option has of each kind,
/// at every position.
std::set<KindSeconds> splits_of(const SearchSpace& space,
                                const CallOption& option) {
  const auto& hardware = space.problem().hardware;
  const auto& cluster = space.problem().cluster;
  std::set<KindSeconds> splits;
  for (auto at = space.align(0, option);
       at + option.num_devices <= space.num_devices();
       at = space.align(at + 1, option)) {
    KindSeconds shares(hardware.kinds.size(), 0);
    for (std::uint32_t i = 0; i < option.num_devices; ++i)
      shares[hardware.kind_of(cluster.node_of(Rank{at + i}))]
        += 1.0 / option.num_devices;
    splits.insert(std::move(shares));
  }
  return splits;
}

/// Lists what the options of a call need of each kind, wherever they are.
std::vector<KindSeconds> uses_of(const SearchSpace& space,
                                 const SearchSpace::SpaceCall& call) {
  std::map<std::pair<std::uint32_t, KindSet>, std::set<KindSeconds>> splits;
  std::vector<KindSeconds> uses;
  for (const auto& option : call.options) {
    const auto [found, is_new]
      = splits.try_emplace({option.num_devices, option.kinds});
    if (is_new)
      found->second = splits_of(space, option);
    for (auto use : found->second) {
      for (auto& seconds : use)
        seconds *= option.device_s * option.cores;
      uses.push_back(std::move(use));
    }
  }
  return uses;
}

/// Bounds the step by what its calls need of the nodes: with weights of kinds
/// that are 1 in all, no step is shorter than the weighted sum of the seconds
/// for which each kind is busy, which is at least the sum of the least over the
/// options of each call. Each weighting gives a bound; the best one is sought.
class KindBound {
public:
  explicit KindBound(const SearchSpace& space) {
    const auto& problem = space.problem();
    const auto per_node = space.num_cores() / problem.cluster.nodes;
    cores_.resize(problem.hardware.kinds.size(), 0);
    for (std::uint32_t node = 0; node < problem.cluster.nodes; ++node)
      cores_[problem.hardware.kind_of(node)] += per_node;
    for (const auto& call : space.calls())
      uses_.push_back(uses_of(space, call));
  }

  double seconds() const {
    auto weights = cores_; // all devices count the same
    const auto all = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (auto& weight : weights)
      weight /= all;
    auto best = bound_s(weights);
    for (auto shift = 0.5; shift > least_shift; shift /= 2)
      for (std::size_t from = 0; from < weights.size(); ++from)
        for (std::size_t to = 0; to < weights.size(); ++to)
          improve(weights, best, from, to, shift);
    return best;
  }

private:
  static constexpr double least_shift = 1e-3;

  /// Moves weight from one kind to another as long as the bound grows.
  void improve(std::vector<double>& weights, double& best, std::size_t from,
               std::size_t to, double shift) const {
    while (weights[from] >= shift) {
      auto next = weights;
      next[from] -= shift;
      next[to] += shift;
      const auto seconds = bound_s(next);
      if (seconds <= best)
        return;
      best = seconds;
      weights = std::move(next);
    }
  }

  double weighted_s(const KindSeconds& use,
                    const std::vector<double>& weights) const {
    double seconds = 0;
    for (std::size_t kind = 0; kind < use.size(); ++kind)
      if (use[kind] > 0)
        seconds += weights[kind] * use[kind] / cores_[kind];
    return seconds;
  }

  double bound_s(const std::vector<double>& weights) const {
    double sum = 0;
    for (const auto& uses : uses_) {
      auto least = std::numeric_limits<double>::infinity();
      for (const auto& use : uses)
        least = std::min(least, weighted_s(use, weights));
      sum += least;
    }
    return sum;
  }

  std::vector<double> cores_;                  ///< by kind, of all its nodes
  std::vector<std::vector<KindSeconds>> uses_; ///< by call of the space
};

} // namespace

double least_step_s(const SearchSpace& space, std::uint32_t max_lag) {
  const auto& workflow = space.problem().workflow;
  std::vector<double> path_s(workflow.calls.size(), 0);
  double core_s = 0, longest_s = 0;
  std::size_t number = 0;
  for (std::size_t i = 0; i < workflow.calls.size(); ++i) {
    for (const auto producer : producers(workflow, i))
      path_s[i] = std::max(path_s[i], path_s[producer]);
    if (workflow.calls[i].kind == CallKind::function)
      continue;
    const auto least = least_of(space.calls()[number++]);
    path_s[i] += least.seconds;
    core_s += least.core_s;
    longest_s = std::max(longest_s, path_s[i]);
  }
  const auto busy_s = space.is_mixed() ? KindBound(space).seconds()
                                       : core_s / space.num_cores();
  return std::max(longest_s / (1 + max_lag), busy_s);
}

} // namespace troupe::plans
