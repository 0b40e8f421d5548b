#include "models/data/source_rows.hpp"

#include "config/settings/data_files.hpp"
#include "config/settings/settings.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe::models {

SourceRows::SourceRows(const Settings& settings,
                       std::vector<std::uint32_t> usable)
  : usable_(std::move(usable)),
    names_(source_names(train_files(settings.data))),
    order_(data_order(settings, usable_)) {}

std::vector<std::uint32_t> SourceRows::of_step(std::uint64_t step) const {
  std::vector<std::uint32_t> ends(usable_.size());
  std::partial_sum(usable_.begin(), usable_.end(), ends.begin());
  std::vector<std::uint32_t> counts(usable_.size());
  for (const auto row : order_.batch(step)) {
    const auto file = std::ranges::upper_bound(ends, row) - ends.begin();
    ++counts.at(static_cast<std::size_t>(file));
  }
  return counts;
}

} // namespace troupe::models
