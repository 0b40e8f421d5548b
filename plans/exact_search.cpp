#include "plans/exact_search.hpp"

#include "config/error.hpp"
#include "plans/internal/layer_patterns.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>

namespace troupe::plans {

namespace {

using internal::layer_patterns;
using internal::pattern_positions;
using internal::pattern_seconds;
using internal::pattern_width;

constexpr double exact_first_budget = 1.02;
constexpr double exact_budget_growth = 1.15;

/// Options of a layer's calls and how they share the line.
struct LayerEntry {
  double seconds = 0;
  std::array<std::uint32_t, 3> options = {};
  std::uint32_t pattern = 0;
};

class BranchAndBound {
public:
  BranchAndBound(const ExactInstance& instance, double known_s,
                 const std::atomic<bool>* stop, std::uint64_t node_limit)
    : instance_(instance),
      stop_(stop),
      node_limit_(node_limit),
      best_s_(known_s > 0 ? known_s : std::numeric_limits<double>::infinity()) {
    for (const auto& layer : instance.layers)
      layers_.push_back(layer);
    const auto trains = [&](const std::vector<std::uint32_t>& layer) {
      return std::ranges::any_of(
        layer, [&](std::uint32_t call) { return instance.calls[call].trains; });
    };
    std::ranges::stable_partition(layers_, trains);
    point_.options.assign(instance.calls.size(), not_chosen);
    point_.positions.assign(instance.calls.size(), 0);
  }

  ExactResult run() {
    least_s_.assign(layers_.size() + 1, 0);
    for (auto i = layers_.size(); i-- > 0;) {
      const auto least = fastest(layers_[i]);
      if (least == std::numeric_limits<double>::infinity()) {
        result_.proved = true; // a call has no option at all
        return result_;
      }
      least_s_[i] = least_s_[i + 1] + least;
    }
    result_.lower_bound_s = least_s_[0];
    for (auto budget = least_s_[0] * exact_first_budget;;
         budget *= exact_budget_growth) {
      const bool last = budget >= most_s();
      search_within(std::min(budget, best_s_));
      if (stopped_)
        return result_;
      if (last || best_s_ <= budget)
        break;
    }
    result_.proved = true;
    return result_;
  }

private:
  /// No plan takes longer: all calls one after the other, at their slowest,
  /// and moves that take as long as that again.
  double most_s() const {
    double sum = 0;
    for (const auto& call : instance_.calls)
      sum += call.options.back().seconds;
    return std::max(4 * sum, 1e3 * least_s_[0]);
  }

  double fastest(const std::vector<std::uint32_t>& layer) const {
    const auto entries
      = entries_within(layer, std::numeric_limits<double>::infinity(), true);
    return entries.empty() ? std::numeric_limits<double>::infinity()
                           : entries.front().seconds;
  }

  void search_within(double budget) {
    budget_s_ = budget;
    entries_.clear();
    for (const auto& layer : layers_)
      entries_.push_back(entries_within(
        layer, budget - least_s_[0] + fastest_of(entries_.size()), false));
    descend(0, 0);
  }
  double fastest_of(std::size_t layer) const {
    return least_s_[layer] - least_s_[layer + 1];
  }

  /// Entries of at most `limit` seconds, fastest first; or the fastest alone.
  std::vector<LayerEntry>
  entries_within(const std::vector<std::uint32_t>& layer, double limit,
                 bool only_fastest) const {
    std::vector<LayerEntry> entries;
    LayerEntry entry;
    std::vector<double> rest = {0};
    for (std::size_t i = layer.size(); i-- > 0;)
      rest.insert(rest.begin(), rest.front() + least_area(layer[i]));
    collect({layer, rest}, 0, 0, limit, only_fastest, entry, entries);
    std::ranges::stable_sort(entries, {}, &LayerEntry::seconds);
    return entries;
  }

  /// Calls of a layer, and the least device-seconds of those from i on.
  struct LayerWork {
    const std::vector<std::uint32_t>& calls;
    const std::vector<double>& rest;
  };

  static double area_of(const ExactOption& option) {
    return option.seconds * option.num_devices;
  }
  double least_area(std::uint32_t call) const {
    auto least = std::numeric_limits<double>::infinity();
    for (const auto& option : instance_.calls[call].options)
      least = std::min(least, area_of(option));
    return least;
  }

  /// No pattern is faster than the device-seconds shared out evenly.
  void collect(const LayerWork& layer, std::size_t depth, double area,
               double& limit, bool only_fastest, LayerEntry& entry,
               std::vector<LayerEntry>& entries) const {
    if (depth == layer.calls.size()) {
      add_patterns(layer.calls, limit, only_fastest, entry, entries);
      return;
    }
    const auto& options = instance_.calls[layer.calls[depth]].options;
    for (std::uint32_t i = 0; i < options.size(); ++i) {
      if (options[i].seconds > limit)
        break; // fastest first
      const auto sum = area + area_of(options[i]);
      if (sum + layer.rest[depth + 1]
          > limit * instance_.num_devices * (1 + 1e-9))
        continue;
      entry.options[depth] = i;
      collect(layer, depth + 1, sum, limit, only_fastest, entry, entries);
    }
  }

  void add_patterns(const std::vector<std::uint32_t>& layer, double& limit,
                    bool only_fastest, LayerEntry& entry,
                    std::vector<LayerEntry>& entries) const {
    std::array<double, 3> seconds{};
    std::array<std::uint32_t, 3> counts{};
    const auto size = layer.size();
    for (std::size_t i = 0; i < size; ++i) {
      const auto& option = instance_.calls[layer[i]].options[entry.options[i]];
      seconds[i] = option.seconds;
      counts[i] = option.num_devices;
    }
    const auto& patterns = layer_patterns(size);
    for (std::uint32_t k = 0; k < patterns.size(); ++k) {
      entry.seconds = pattern_seconds(patterns[k], {seconds.data(), size});
      entry.pattern = k;
      const bool fits = entry.seconds <= limit
                        && pattern_width(patterns[k], {counts.data(), size})
                             <= instance_.num_devices;
      if (!fits)
        continue;
      if (only_fastest) {
        limit = entry.seconds;
        entries.clear();
      }
      entries.push_back(entry);
    }
  }

  bool should_stop() {
    const bool asked = stop_ && stop_->load(std::memory_order_relaxed);
    stopped_ = stopped_ || asked || result_.nodes > node_limit_;
    return stopped_;
  }

  void descend(std::size_t depth, double before_s) {
    if (depth == layers_.size()) {
      best_s_ = before_s;
      result_.found = true;
      result_.point = point_;
      result_.seconds = before_s;
      return;
    }
    for (const auto& entry : entries_[depth]) {
      const auto bound = before_s + entry.seconds + least_s_[depth + 1];
      if (bound >= best_s_ || bound > budget_s_ || should_stop())
        break;
      place_entry(depth, before_s, entry);
    }
    for (const auto call : layers_[depth])
      point_.options[call] = not_chosen;
  }

  /// Tries an entry at each of its positions.
  void place_entry(std::size_t depth, double before_s,
                   const LayerEntry& entry) {
    const auto& layer = layers_[depth];
    const auto& pattern = layer_patterns(layer.size())[entry.pattern];
    std::vector<std::uint32_t> counts;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      point_.options[layer[i]] = entry.options[i];
      counts.push_back(
        instance_.calls[layer[i]].options[entry.options[i]].num_devices);
    }
    for (const auto& positions : positions_of(entry.pattern, pattern, counts)) {
      ++result_.nodes;
      for (std::size_t i = 0; i < layer.size(); ++i)
        point_.positions[layer[i]] = positions[i];
      if (!instance_.fits(point_))
        continue;
      const auto after_s = before_s + seconds_with_moves(layer, pattern);
      if (after_s + least_s_[depth + 1] < best_s_
          && after_s + least_s_[depth + 1] <= budget_s_)
        descend(depth + 1, after_s);
      for (std::size_t i = 0; i < layer.size(); ++i)
        point_.options[layer[i]] = entry.options[i]; // the descent clears them
    }
  }

  /// Few combinations of sizes come again and again.
  const std::vector<std::vector<std::uint32_t>>&
  positions_of(std::uint32_t number, const internal::LayerPattern& pattern,
               const std::vector<std::uint32_t>& counts) {
    auto key = counts;
    key.push_back(number);
    const auto [found, added] = positions_.try_emplace(std::move(key));
    if (added)
      found->second = pattern_positions(pattern, counts, instance_.num_devices,
                                        instance_.align);
    return found->second;
  }

  double seconds_with_moves(const std::vector<std::uint32_t>& layer,
                            const internal::LayerPattern& pattern) const {
    std::array<double, 3> seconds{};
    for (std::size_t i = 0; i < layer.size(); ++i) {
      const auto& call = instance_.calls[layer[i]];
      seconds[i] = call.options[point_.options[layer[i]]].seconds;
      if (call.home >= 0 && !call.trains)
        seconds[i] += instance_.move_s(layer[i], point_);
    }
    return pattern_seconds(pattern, {seconds.data(), layer.size()});
  }

  const ExactInstance& instance_;
  const std::atomic<bool>* stop_;
  std::uint64_t node_limit_;
  double best_s_;
  double budget_s_ = 0;
  bool stopped_ = false;
  std::vector<std::vector<std::uint32_t>> layers_; ///< trainings first
  std::vector<double> least_s_;                    ///< of layers from i on
  std::vector<std::vector<LayerEntry>> entries_;
  std::map<std::vector<std::uint32_t>, std::vector<std::vector<std::uint32_t>>>
    positions_;
  SpacePoint point_;
  ExactResult result_;
};

} // namespace

ExactResult exact_search(const ExactInstance& instance, double known_s,
                         const std::atomic<bool>* stop,
                         std::uint64_t node_limit) {
  return BranchAndBound(instance, known_s, stop, node_limit).run();
}

double layer_makespan(const std::vector<double>& seconds,
                      const std::vector<std::uint32_t>& positions,
                      const std::vector<std::uint32_t>& num_devices) {
  std::vector<std::size_t> order(seconds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto best = std::numeric_limits<double>::infinity();
  do {
    std::vector<double> end(seconds.size(), 0);
    double last = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      double start = 0;
      for (std::size_t k = 0; k < i; ++k) {
        const auto a = order[i], b = order[k];
        const bool shared = positions[a] < positions[b] + num_devices[b]
                            && positions[b] < positions[a] + num_devices[a];
        start = shared ? std::max(start, end[b]) : start;
      }
      end[order[i]] = start + seconds[order[i]];
      last = std::max(last, end[order[i]]);
    }
    best = std::min(best, last);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

} // namespace troupe::plans
