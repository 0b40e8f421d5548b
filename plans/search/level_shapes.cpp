#include "plans/search/level_shapes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace troupe::plans::internal {

namespace {

constexpr double first_reach = 1.3; ///< factor on the fastest shape
constexpr double reach_growth = 1.6;
constexpr std::size_t most_shapes = 1'000'000;

} // namespace

LevelShapes::LevelShapes(const ExactInstance& instance,
                         std::vector<std::uint32_t> calls)
  : instance_(&instance),
    calls_(std::move(calls)),
    groups_(calls_.size()) {
  const bool share_cores = std::isfinite(instance.num_cores);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    std::map<std::pair<std::uint32_t, double>, SizeGroup> by_size;
    const auto& options = instance.calls[calls_[i]].options;
    for (std::uint32_t k = 0; k < options.size(); ++k)
      by_size[{options[k].num_devices, share_cores ? options[k].cores : 1.0}]
        .options.push_back(k);
    for (auto& [size, group] : by_size) {
      std::tie(group.num_devices, group.cores) = size;
      group.number = num_groups_++;
      groups_[i].push_back(std::move(group));
    }
    if (!options.empty())
      most_s_ += options.back().seconds;
  }
  least_s_ = fastest();
}

double LevelShapes::option_s(std::size_t call, std::uint32_t option) const {
  return instance_->calls[calls_[call]].options[option].seconds;
}

double LevelShapes::seconds(const LevelShape& shape,
                            const std::array<double, 3>& s) const {
  double core_s = 0;
  for (std::size_t i = 0; i < calls_.size(); ++i)
    core_s += s[i] * shape.groups[i]->cores;
  return std::max(core_s / instance_->num_cores,
                  pattern_seconds(level_patterns(calls_.size())[shape.pattern],
                                  {s.data(), calls_.size()}));
}

/// Visits every choice of sizes under every pattern that fits on the line.
template <class Visit>
void LevelShapes::for_each_fitting(Visit visit) const {
  LevelShape shape;
  std::array<std::uint32_t, 3> counts{};
  std::array<double, 3> least{};
  const auto size = calls_.size();
  const auto& patterns = level_patterns(size);
  const auto choose = [&](auto& self, std::size_t depth) -> void {
    if (depth == size) {
      for (std::uint32_t k = 0; k < patterns.size(); ++k) {
        if (pattern_width(patterns[k], {counts.data(), size})
            > instance_->num_devices)
          continue;
        shape.pattern = k;
        shape.least_s = seconds(shape, least);
        visit(shape);
      }
      return;
    }
    for (const auto& group : groups_[depth]) {
      shape.groups[depth] = &group;
      counts[depth] = group.num_devices;
      least[depth] = option_s(depth, group.options.front());
      self(self, depth + 1);
    }
  };
  choose(choose, 0);
}

double LevelShapes::fastest() const {
  auto least = std::numeric_limits<double>::infinity();
  for_each_fitting(
    [&](const LevelShape& shape) { least = std::min(least, shape.least_s); });
  return least;
}

const LevelShape* LevelShapes::at(std::size_t i) {
  while (i >= shapes_.size() && known_s_ < most_s_ && !is_cut_)
    grow();
  if (i >= shapes_.size())
    return nullptr;
  if (!shapes_[i].positions)
    shapes_[i].positions = &positions_of(shapes_[i]);
  return &shapes_[i];
}

void LevelShapes::grow() {
  const auto above_s = known_s_;
  known_s_ = known_s_ < 0 ? std::max(least_s_ * first_reach, most_s_ * 1e-3)
                          : known_s_ * reach_growth;
  const auto begin = static_cast<std::ptrdiff_t>(shapes_.size());
  for_each_fitting([&](const LevelShape& shape) {
    if (shape.least_s <= above_s || shape.least_s > known_s_)
      return;
    is_cut_ = is_cut_ || shapes_.size() >= most_shapes;
    if (!is_cut_)
      shapes_.push_back(shape);
  });
  std::ranges::stable_sort(shapes_.begin() + begin, shapes_.end(), {},
                           &LevelShape::least_s);
}

/// Cached, because the same few combinations of sizes occur again and again.
const SeriesOfPositions& LevelShapes::positions_of(const LevelShape& shape) {
  std::array<std::uint32_t, 4> key{shape.pattern};
  for (std::size_t i = 0; i < calls_.size(); ++i)
    key[1 + i] = shape.groups[i]->num_devices;
  const auto [found, added] = positions_.try_emplace(key);
  if (added)
    found->second = pattern_positions(
      level_patterns(calls_.size())[shape.pattern],
      {key.data() + 1, calls_.size()}, instance_->num_devices,
      exact_all_positions, instance_->align);
  return found->second;
}

} // namespace troupe::plans::internal
