#include "plans/exact_search.hpp"

#include "plans/internal/layer_entries.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

namespace troupe::plans {

namespace {

using internal::layer_patterns;
using internal::LayerEntries;
using internal::LayerEntry;
using internal::pattern_positions;
using internal::pattern_seconds;

constexpr double never = std::numeric_limits<double>::infinity();

class BranchAndBound {
public:
  BranchAndBound(const ExactInstance& instance, double known_s,
                 const std::atomic<bool>* stop, std::uint64_t node_limit)
    : instance_(instance),
      stop_(stop),
      node_limit_(node_limit),
      best_s_(known_s > 0 ? known_s : never) {
    for (std::uint32_t i = 0; i < instance.layers.size(); ++i)
      layers_.push_back({LayerEntries(instance, instance.layers[i]), i});
    const auto others
      = std::ranges::stable_partition(layers_, [&](const Layer& layer) {
          return std::ranges::any_of(
            layer.entries.calls(),
            [&](std::uint32_t call) { return instance.calls[call].trains; });
        });
    trainings_ = layers_.size() - others.size();
    beside_.resize(layers_.size());
    point_.options.assign(instance.calls.size(), not_chosen);
    point_.positions.assign(instance.calls.size(), 0);
  }

  ExactResult run() {
    for (const auto& layer : layers_)
      result_.lower_bound_s += layer.entries.least_s();
    if (result_.lower_bound_s == never) {
      result_.lower_bound_s = 0; // a call has no option at all
      result_.proved = true;
      return result_;
    }
    descend(0, 0);
    result_.proved
      = !stopped_ && std::ranges::none_of(layers_, [](const Layer& layer) {
          return layer.entries.is_cut();
        });
    return result_;
  }

private:
  struct Layer {
    LayerEntries entries;
    std::uint32_t number; ///< in the step
  };

  bool should_stop() {
    const bool asked = stop_ && stop_->load(std::memory_order_relaxed);
    stopped_ = stopped_ || asked || result_.nodes > node_limit_;
    return stopped_;
  }

  void descend(std::size_t depth, double before_s) {
    if (depth == layers_.size())
      return finish(before_s);
    auto& entries = layers_[depth].entries;
    const auto others_s = least_before(depth);
    const auto first = depth < trainings_ ? 0 : beside_[depth].first;
    for (auto i = first; const auto* entry = entries.at(i); ++i) {
      if (before_s + entry->seconds + others_s >= best_s_ || should_stop())
        break;
      place_entry(depth, before_s, *entry);
    }
    for (const auto call : entries.calls())
      point_.options[call] = not_chosen;
  }

  void finish(double layers_s) {
    if (layers_s >= best_s_)
      return;
    ++result_.leaves;
    const auto seconds = instance_.step_s ? instance_.step_s(point_) : layers_s;
    if (seconds >= best_s_)
      return;
    best_s_ = seconds;
    result_.found = true;
    result_.point = point_;
    result_.seconds = seconds;
  }

  /// Tries an entry at each of its positions.
  void place_entry(std::size_t depth, double before_s, LayerEntry entry) {
    const auto& calls = layers_[depth].entries.calls();
    for (const auto& positions : positions_of(calls, entry)) {
      ++result_.nodes;
      choose(calls, entry, positions, point_);
      if (!instance_.fits(point_))
        continue;
      const auto after_s
        = before_s
          + entry_s(
            calls, entry, point_,
            [&](auto call) { return counts_move(layers_[depth], call); },
            [&](auto call) { return counts_reload(layers_[depth], call); });
      if (depth + 1 == trainings_ && !fits_beside_trainings(after_s))
        continue;
      if (after_s + least_behind(depth) < best_s_)
        descend(depth + 1, after_s);
    }
  }

  /// Looks once for each choice of trainings where the lists of the other
  /// layers begin to fit beside them, and how fast those layers are then. False
  /// if none of them can be fast enough.
  bool fits_beside_trainings(double trainings_s) {
    for (auto i = trainings_; i < layers_.size(); ++i)
      beside_[i] = {least_of(layers_[i]), 0};
    for (auto i = trainings_; i < layers_.size(); ++i) {
      const auto others_s = least_behind(trainings_ - 1) - beside_[i].least_s;
      const auto room_s = best_s_ - trainings_s - others_s;
      beside_[i] = look_beside(layers_[i], room_s);
      if (beside_[i].least_s >= room_s || stopped_)
        return false;
    }
    return true;
  }

  struct Beside {
    double least_s = 0;
    std::size_t first = 0; ///< of the entries, that fits
  };

  Beside look_beside(Layer& layer, double room_s) {
    const auto& calls = layer.entries.calls();
    auto point = point_;
    Beside beside{never, 0};
    const auto counts = [&](auto) { return layer.number == 0; };
    const auto reloads = [&](auto call) { return counts_reload(layer, call); };
    for (std::size_t i = 0; const auto* at = layer.entries.at(i); ++i) {
      const auto entry = *at;
      if (entry.seconds >= std::min(room_s, beside.least_s) || should_stop())
        break;
      for (const auto& positions : positions_of(calls, entry)) {
        ++result_.nodes;
        choose(calls, entry, positions, point);
        if (!instance_.fits(point))
          continue;
        beside.first = beside.least_s == never ? i : beside.first;
        beside.least_s = std::min(
          beside.least_s, entry_s(calls, entry, point, counts, reloads));
      }
    }
    return beside;
  }

  static void choose(const std::vector<std::uint32_t>& calls,
                     const LayerEntry& entry,
                     const std::vector<std::uint32_t>& positions,
                     SpacePoint& point) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      point.options[calls[i]] = entry.options[i];
      point.positions[calls[i]] = positions[i];
    }
  }

  /// Few combinations of sizes come again and again.
  const std::vector<std::vector<std::uint32_t>>&
  positions_of(const std::vector<std::uint32_t>& calls,
               const LayerEntry& entry) {
    std::array<std::uint32_t, 5> key{entry.pattern,
                                     static_cast<std::uint32_t>(calls.size())};
    for (std::size_t i = 0; i < calls.size(); ++i)
      key[2 + i]
        = instance_.calls[calls[i]].options[entry.options[i]].num_devices;
    const auto [found, added] = positions_.try_emplace(key);
    if (added)
      found->second = pattern_positions(
        layer_patterns(calls.size())[entry.pattern],
        {key.data() + 2, calls.size()}, instance_.num_devices,
        exact_all_positions, instance_.align);
    return found->second;
  }

  /// Seconds of a layer, with the moves and reloads that count.
  template <class Moves, class Reloads>
  double entry_s(const std::vector<std::uint32_t>& calls,
                 const LayerEntry& entry, const SpacePoint& point,
                 Moves counts_move, Reloads counts_reload) const {
    std::array<double, 3> seconds{};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto& call = instance_.calls[calls[i]];
      const auto& option = call.options[entry.options[i]];
      seconds[i]
        = option.seconds + (counts_reload(calls[i]) ? option.comes_s : 0);
      if (call.home >= 0 && !call.trains && counts_move(calls[i]))
        seconds[i] += instance_.move_s(calls[i], point);
    }
    return std::max(entry.seconds,
                    pattern_seconds(layer_patterns(calls.size())[entry.pattern],
                                    {seconds.data(), calls.size()}));
  }

  bool share_a_device(std::uint32_t a, std::uint32_t b) const {
    const auto count = [&](std::uint32_t call) {
      return instance_.calls[call].options[point_.options[call]].num_devices;
    };
    return point_.positions[a] < point_.positions[b] + count(b)
           && point_.positions[b] < point_.positions[a] + count(a);
  }
  /// The single call before the second layer, if it is chosen.
  bool runs_behind(const Layer& layer, std::uint32_t other) const {
    const auto& first = instance_.layers.front();
    return layer.number == 1 && first.size() == 1
           && point_.options[first.front()] != not_chosen
           && share_a_device(first.front(), other);
  }
  /// Whether the step waits for the move of `call`, whenever it runs.
  bool counts_move(const Layer& layer, std::uint32_t call) const {
    const auto home = static_cast<std::uint32_t>(instance_.calls[call].home);
    return layer.number == 0 || runs_behind(layer, call)
           || runs_behind(layer, home);
  }

  /// Whether the step waits for the reload before `call`, if it has one.
  bool counts_reload(const Layer& layer, std::uint32_t call) const {
    return layer.number == 0 || runs_behind(layer, call);
  }

  /// Of the layers behind `depth`, when the layers up to it are placed.
  double least_behind(std::size_t depth) {
    double sum = 0;
    for (auto i = depth + 1; i < layers_.size(); ++i)
      sum += depth + 1 < trainings_
               ? least_of(layers_[i])
               : std::max(least_of(layers_[i]), beside_[i].least_s);
    return sum;
  }
  /// The same before the layer of `depth` is placed.
  double least_before(std::size_t depth) {
    if (depth >= trainings_)
      return least_behind(depth);
    double sum = 0;
    for (auto i = depth + 1; i < layers_.size(); ++i)
      sum += least_of(layers_[i]);
    return sum;
  }

  /// No entry of a layer is faster with the homes that are chosen: their moves,
  /// as far as they count for sure, and their memory.
  double least_of(Layer& layer) {
    std::vector<std::uint32_t> key = {layer.number};
    for (const auto call : layer.entries.calls()) {
      const auto& one = instance_.calls[call];
      if (one.home < 0 || one.trains)
        continue;
      const auto home = static_cast<std::uint32_t>(one.home);
      if (point_.options[home] == not_chosen)
        return layer.entries.least_s();
      const bool counts = layer.number == 0 || runs_behind(layer, home);
      key.insert(key.end(), {home, point_.options[home], point_.positions[home],
                             counts ? 1u : 0u});
    }
    if (key.size() == 1)
      return layer.entries.least_s();
    const auto found = least_given_.find(key);
    if (found != least_given_.end())
      return found->second;
    const auto seconds = work_out_least(layer, key);
    least_given_.emplace(std::move(key), seconds);
    return seconds;
  }

  /// Entries that reach the best plan on their own are not looked at: the least
  /// of them stands for all.
  double work_out_least(Layer& layer, const std::vector<std::uint32_t>& key) {
    SpacePoint point{
      .options = std::vector<std::uint32_t>(point_.options.size(), not_chosen),
      .positions = std::vector<std::uint32_t>(point_.options.size(), 0)};
    std::vector<std::uint32_t> counted; // homes
    for (std::size_t i = 1; i < key.size(); i += 4) {
      point.options[key[i]] = key[i + 1];
      point.positions[key[i]] = key[i + 2];
      if (key[i + 3] != 0)
        counted.push_back(key[i]);
    }
    const auto counts = [&](std::uint32_t call) {
      const auto home = static_cast<std::uint32_t>(instance_.calls[call].home);
      return std::ranges::find(counted, home) != counted.end();
    };
    const auto& calls = layer.entries.calls();
    auto least = never;
    for (std::size_t i = 0; const auto* at = layer.entries.at(i); ++i) {
      const auto entry = *at;
      if (entry.seconds >= std::min(least, best_s_) || should_stop())
        return std::min(least, entry.seconds);
      for (const auto& positions : positions_of(calls, entry)) {
        ++result_.nodes;
        choose(calls, entry, positions, point);
        if (instance_.fits(point))
          least
            = std::min(least, entry_s(calls, entry, point, counts,
                                      [&](auto) { return layer.number == 0; }));
      }
    }
    return least;
  }

  const ExactInstance& instance_;
  const std::atomic<bool>* stop_;
  std::uint64_t node_limit_;
  double best_s_;
  bool stopped_ = false;
  std::vector<Layer> layers_;  ///< trainings first
  std::size_t trainings_ = 0;  ///< layers of them
  std::vector<Beside> beside_; ///< by layer; of those behind the trainings
  std::map<std::vector<std::uint32_t>, double> least_given_;
  std::map<std::array<std::uint32_t, 5>,
           std::vector<std::vector<std::uint32_t>>>
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
