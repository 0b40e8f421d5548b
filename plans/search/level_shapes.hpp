// The shapes that a level of calls can have, fastest first: how many devices
// each call gets and how the calls share the line of devices
// (level_patterns.hpp). Options of equal size form one group, so a level has
// hundreds of shapes where it has millions of choices of options. The search
// decides which options of a shape fit. Computed lazily.
#pragma once

#include "plans/search/exact_search.hpp"
#include "plans/search/level_patterns.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace troupe::plans::internal {

/// Options of one call with the same number of devices, and of cores where
/// calls share them, fastest first.
struct SizeGroup {
  std::uint32_t number = 0; ///< index among the groups of the whole level
  std::uint32_t num_devices = 0;
  double cores = 1;
  std::vector<std::uint32_t> options = {};
};

using SeriesOfPositions = std::vector<std::vector<std::uint32_t>>;

struct LevelShape {
  double least_s = 0; ///< with the fastest option of each group
  std::array<const SizeGroup*, 3> groups = {}; ///< by call of the level
  std::uint32_t pattern = 0;
  const SeriesOfPositions* positions = nullptr; ///< set by LevelShapes::at
};

class LevelShapes {
public:
  /// Keeps a reference: `instance` must outlive this; `calls`: 1 to 3 of it.
  LevelShapes(const ExactInstance& instance, std::vector<std::uint32_t> calls);

  const std::vector<std::uint32_t>& calls() const {
    return calls_;
  }
  std::uint32_t num_groups() const {
    return num_groups_;
  }
  /// Returns the time of the fastest shape; infinity if a call has no option.
  double least_s() const {
    return least_s_;
  }
  /// Returns the i-th fastest shape with its positions; nullptr after the last
  /// one, and after the last that there is space for (`is_cut`). The pointer is
  /// valid until the next call of this.
  const LevelShape* at(std::size_t i);
  /// Returns whether there are more shapes than at() returns.
  bool is_cut() const {
    return is_cut_;
  }

  double option_s(std::size_t call, std::uint32_t option) const;
  /// Returns the least seconds of the level when its calls take `s`.
  double seconds(const LevelShape& shape, const std::array<double, 3>& s) const;

private:
  double fastest() const;
  void grow();
  const SeriesOfPositions& positions_of(const LevelShape& shape);
  template <class Visit>
  void for_each_fitting(Visit visit) const;

  const ExactInstance* instance_;
  std::vector<std::uint32_t> calls_;
  std::vector<std::vector<SizeGroup>> groups_; ///< by call
  std::uint32_t num_groups_ = 0;
  double least_s_ = 0;
  double most_s_ = 0;   ///< no choice of options takes longer
  double known_s_ = -1; ///< shapes up to here are in the list
  std::vector<LevelShape> shapes_;
  bool is_cut_ = false;
  std::map<std::array<std::uint32_t, 4>, SeriesOfPositions> positions_;
};

} // namespace troupe::plans::internal
