// The ways to run the calls of one layer, fastest first: an option for each
// call and how they share the line of devices (layer_patterns.hpp). Worked out
// as far as somebody asks: a list to four times the fastest would have millions
// of entries where a search looks at hundreds. Moves and memory are not in it.
#pragma once

#include "plans/exact_search.hpp"
#include "plans/internal/layer_patterns.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace troupe::plans::internal {

struct LayerEntry {
  double seconds = 0;
  std::array<std::uint32_t, 3> options = {}; ///< by call of the layer
  std::uint32_t pattern = 0;
};

class LayerEntries {
public:
  /// `instance` must outlive this; `calls`: 1 to 3 of it.
  LayerEntries(const ExactInstance& instance, std::vector<std::uint32_t> calls);

  const std::vector<std::uint32_t>& calls() const {
    return calls_;
  }
  /// Of the fastest entry; infinity if a call has no option.
  double least_s() const {
    return least_s_;
  }
  /// The i-th fastest; nullptr behind the last one, and behind the last that
  /// there is room for (`is_cut`). Ends with the next call of this.
  const LayerEntry* at(std::size_t i);
  /// There are more entries than at() gives.
  bool is_cut() const {
    return is_cut_;
  }

private:
  /// Options of one call with one number of devices and of cores, fastest
  /// first.
  struct SizeGroup {
    std::uint32_t num_devices = 0;
    double cores = 1;
    std::vector<std::uint32_t> options = {};
  };
  using Groups = std::array<const SizeGroup*, 3>;

  /// Of the calls that take `s`, at the least.
  double least_seconds(const Groups& groups, std::uint32_t pattern,
                       const std::array<double, 3>& s) const;
  double fastest() const;
  void grow();
  template <class Visit>
  void for_each_fitting(Visit visit) const;
  void add_entries(const Groups& groups, std::uint32_t pattern, double above_s,
                   double limit_s);
  void add_from(std::size_t depth, const Groups& groups, double above_s,
                double limit_s, LayerEntry& entry, std::array<double, 3>& s);
  double option_s(std::size_t call, std::uint32_t option) const;

  const ExactInstance* instance_;
  std::vector<std::uint32_t> calls_;
  std::vector<std::vector<SizeGroup>> groups_; ///< by call
  double least_s_ = 0;
  double most_s_ = 0;   ///< no entry takes longer
  double known_s_ = -1; ///< entries up to here are in the list
  std::vector<LayerEntry> entries_;
  bool is_cut_ = false;
};

} // namespace troupe::plans::internal
