#include "plans/search/level_patterns.hpp"

#include "config/base/error.hpp"

#include <algorithm>

namespace troupe::plans::internal {

namespace {

/// Packs lanes in the given order from the left; with `last_right` the last one
/// ends at the end of the line. Returns nothing if they do not fit.
std::vector<std::uint32_t>
pack_lanes(const LevelPattern& pattern, std::span<const std::size_t> order,
           std::span<const std::uint32_t> num_devices, std::uint32_t line,
           const Align& align, bool last_right) {
  std::vector<std::uint32_t> positions(num_devices.size(), 0);
  std::uint32_t cursor = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto end = cursor;
    for (const auto call : pattern.lanes[order[i]]) {
      const auto count = num_devices[call];
      if (count > line)
        return {};
      auto at = align(cursor, count);
      if (last_right && i + 1 == order.size())
        at = line - count;
      if (at < cursor || at + count > line)
        return {};
      positions[call] = at;
      end = std::max(end, at + count);
    }
    cursor = end;
  }
  return positions;
}

void append_once(std::vector<std::vector<std::uint32_t>>& all,
                 std::vector<std::uint32_t> positions) {
  if (!positions.empty() && std::ranges::find(all, positions) == all.end())
    all.push_back(std::move(positions));
}

bool overlap(std::uint32_t a, std::uint32_t a_count, std::uint32_t b,
             std::uint32_t b_count) {
  return a < b + b_count && b < a + a_count;
}

/// Every aligned position of every call at which lanes do not overlap.
class AllPositions {
public:
  AllPositions(const LevelPattern& pattern,
               std::span<const std::uint32_t> num_devices, std::uint32_t line,
               const Align& align)
    : num_devices_(num_devices),
      line_(line),
      align_(align),
      lane_of_(num_devices.size(), -1),
      positions_(num_devices.size(), 0) {
    for (std::size_t lane = 0; lane < pattern.lanes.size(); ++lane)
      for (const auto call : pattern.lanes[lane])
        lane_of_[call] = static_cast<int>(lane);
    choose(0);
  }
  std::vector<std::vector<std::uint32_t>> all;

private:
  void choose(std::size_t call) {
    if (call == num_devices_.size()) {
      all.push_back(positions_);
      return;
    }
    const auto count = num_devices_[call];
    for (auto at = align_(0, count); at + count <= line_;
         at = align_(at + 1, count)) {
      positions_[call] = at;
      if (is_apart(call))
        choose(call + 1);
    }
  }
  bool is_apart(std::size_t call) const {
    for (std::size_t other = 0; other < call; ++other)
      if (lane_of_[other] >= 0 && lane_of_[call] >= 0
          && lane_of_[other] != lane_of_[call]
          && overlap(positions_[call], num_devices_[call], positions_[other],
                     num_devices_[other]))
        return false;
    return true;
  }

  std::span<const std::uint32_t> num_devices_;
  std::uint32_t line_;
  const Align& align_;
  std::vector<int> lane_of_; ///< -1: across
  std::vector<std::uint32_t> positions_;
};

std::vector<std::vector<LevelPattern>> make_patterns() {
  std::vector<std::vector<LevelPattern>> patterns(4);
  patterns[1] = {{.lanes = {{0}}}};
  patterns[2] = {{.lanes = {{0}, {1}}}, {.lanes = {{0, 1}}}};
  patterns[3]
    = {{.lanes = {{0}, {1}, {2}}},         {.lanes = {{0}, {1, 2}}},
       {.lanes = {{1}, {0, 2}}},           {.lanes = {{2}, {0, 1}}},
       {.lanes = {{1}, {2}}, .across = 0}, {.lanes = {{0}, {2}}, .across = 1},
       {.lanes = {{0}, {1}}, .across = 2}, {.lanes = {{0, 1, 2}}}};
  return patterns;
}

} // namespace

const std::vector<LevelPattern>& level_patterns(std::size_t num_calls) {
  static const auto patterns = make_patterns();
  TROUPE_CHECK(num_calls >= 1 && num_calls <= 3, "levels have 1 to 3 calls");
  return patterns[num_calls];
}

double pattern_seconds(const LevelPattern& pattern,
                       std::span<const double> seconds) {
  double longest = 0;
  for (const auto& lane : pattern.lanes) {
    double sum = 0;
    for (const auto call : lane)
      sum += seconds[call];
    longest = std::max(longest, sum);
  }
  return longest
         + (pattern.across < 0
              ? 0
              : seconds[static_cast<std::size_t>(pattern.across)]);
}

std::uint32_t pattern_width(const LevelPattern& pattern,
                            std::span<const std::uint32_t> num_devices) {
  std::uint32_t width = 0;
  for (const auto& lane : pattern.lanes) {
    std::uint32_t widest = 0;
    for (const auto call : lane)
      widest = std::max(widest, num_devices[call]);
    width += widest;
  }
  return pattern.across < 0
           ? width
           : std::max(width,
                      num_devices[static_cast<std::size_t>(pattern.across)]);
}

std::vector<std::vector<std::uint32_t>> pattern_positions(
  const LevelPattern& pattern, std::span<const std::uint32_t> num_devices,
  std::uint32_t line, std::uint32_t all_up_to, const Align& align) {
  if (line <= all_up_to)
    return AllPositions(pattern, num_devices, line, align).all;
  std::vector<std::vector<std::uint32_t>> all;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < pattern.lanes.size(); ++i)
    order.push_back(i);
  do {
    for (const bool last_right : {false, true}) {
      auto positions
        = pack_lanes(pattern, order, num_devices, line, align, last_right);
      if (positions.empty() || pattern.across < 0) {
        append_once(all, std::move(positions));
        continue;
      }
      const auto across = static_cast<std::size_t>(pattern.across);
      positions[across] = 0;
      append_once(all, positions);
      positions[across] = line - num_devices[across];
      append_once(all, std::move(positions));
    }
  } while (std::ranges::next_permutation(order).found);
  return all;
}

} // namespace troupe::plans::internal
