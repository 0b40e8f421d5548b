#include "plans/internal/layer_entries.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace troupe::plans::internal {

namespace {

constexpr double first_reach = 1.3; ///< times the fastest entry
constexpr double reach_growth = 1.6;
constexpr std::size_t most_entries = 1'000'000;

} // namespace

LayerEntries::LayerEntries(const ExactInstance& instance,
                           std::vector<std::uint32_t> calls)
  : instance_(&instance),
    calls_(std::move(calls)),
    groups_(calls_.size()) {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    std::map<std::pair<std::uint32_t, double>, SizeGroup> by_size;
    const auto& options = instance.calls[calls_[i]].options;
    for (std::uint32_t k = 0; k < options.size(); ++k)
      by_size[{options[k].num_devices, options[k].cores}].options.push_back(k);
    for (auto& [size, group] : by_size) {
      std::tie(group.num_devices, group.cores) = size;
      groups_[i].push_back(std::move(group));
    }
    if (!options.empty())
      most_s_ += options.back().seconds;
  }
  least_s_ = fastest();
}

double LayerEntries::option_s(std::size_t call, std::uint32_t option) const {
  return instance_->calls[calls_[call]].options[option].seconds;
}

double LayerEntries::least_seconds(const Groups& groups, std::uint32_t pattern,
                                   const std::array<double, 3>& s) const {
  double core_s = 0;
  for (std::size_t i = 0; i < calls_.size(); ++i)
    core_s += s[i] * groups[i]->cores;
  return std::max(core_s / instance_->num_cores,
                  pattern_seconds(layer_patterns(calls_.size())[pattern],
                                  {s.data(), calls_.size()}));
}

/// Every choice of sizes under every pattern that the line has room for, with
/// the least seconds of such an entry.
template <class Visit>
void LayerEntries::for_each_fitting(Visit visit) const {
  Groups groups{};
  std::array<std::uint32_t, 3> counts{};
  std::array<double, 3> least{};
  const auto size = calls_.size();
  const auto& patterns = layer_patterns(size);
  const auto choose = [&](auto& self, std::size_t depth) -> void {
    if (depth == size) {
      for (std::uint32_t k = 0; k < patterns.size(); ++k)
        if (pattern_width(patterns[k], {counts.data(), size})
            <= instance_->num_devices)
          visit(groups, k, least_seconds(groups, k, least));
      return;
    }
    for (const auto& group : groups_[depth]) {
      groups[depth] = &group;
      counts[depth] = group.num_devices;
      least[depth] = option_s(depth, group.options.front());
      self(self, depth + 1);
    }
  };
  choose(choose, 0);
}

double LayerEntries::fastest() const {
  auto least = std::numeric_limits<double>::infinity();
  for_each_fitting([&](const Groups&, std::uint32_t, double seconds) {
    least = std::min(least, seconds);
  });
  return least;
}

const LayerEntry* LayerEntries::at(std::size_t i) {
  while (i >= entries_.size() && known_s_ < most_s_ && !is_cut_)
    grow();
  return i < entries_.size() ? &entries_[i] : nullptr;
}

void LayerEntries::grow() {
  const auto above_s = known_s_;
  known_s_ = known_s_ < 0 ? std::max(least_s_ * first_reach, most_s_ * 1e-3)
                          : known_s_ * reach_growth;
  const auto begin = static_cast<std::ptrdiff_t>(entries_.size());
  for_each_fitting(
    [&](const Groups& groups, std::uint32_t pattern, double seconds) {
      if (seconds <= known_s_)
        add_entries(groups, pattern, above_s, known_s_);
    });
  std::ranges::stable_sort(entries_.begin() + begin, entries_.end(), {},
                           &LayerEntry::seconds);
}

void LayerEntries::add_entries(const Groups& groups, std::uint32_t pattern,
                               double above_s, double limit_s) {
  LayerEntry entry{.pattern = pattern};
  std::array<double, 3> seconds{};
  for (std::size_t i = 0; i < calls_.size(); ++i)
    seconds[i] = option_s(i, groups[i]->options.front());
  add_from(0, groups, above_s, limit_s, entry, seconds);
}

/// Seconds of a pattern grow with those of each call: behind the first option
/// that is too slow, with the fastest of the calls behind it, all are.
void LayerEntries::add_from(std::size_t depth, const Groups& groups,
                            double above_s, double limit_s, LayerEntry& entry,
                            std::array<double, 3>& s) {
  const auto& options = groups[depth]->options;
  for (const auto option : options) {
    s[depth] = option_s(depth, option);
    entry.options[depth] = option;
    entry.seconds = least_seconds(groups, entry.pattern, s);
    if (entry.seconds > limit_s || is_cut_)
      break;
    if (depth + 1 < calls_.size()) {
      add_from(depth + 1, groups, above_s, limit_s, entry, s);
    } else if (entry.seconds > above_s) {
      is_cut_ = entries_.size() >= most_entries;
      entries_.push_back(entry);
    }
  }
  s[depth] = option_s(depth, options.front());
}

} // namespace troupe::plans::internal
