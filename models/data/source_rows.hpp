// How many rows each file of data.train gives to a step: what metrics and
// tables say of a mixture or of several files. Counted from the order, without
// reading a row.
#pragma once

#include "models/data/data_order.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::models {

class SourceRows {
public:
  /// `usable`: rows of each file.
  SourceRows(const Settings& settings, std::vector<std::uint32_t> usable);

  /// Returns true if there is one file, of which nothing is worth saying.
  bool is_one() const {
    return usable_.size() < 2;
  }
  /// Returns a short name of each file, in their order.
  const std::vector<std::string>& names() const {
    return names_;
  }
  const std::vector<std::uint32_t>& usable() const {
    return usable_;
  }
  /// Returns how many rows of each file a step (from 0) reads. Not thread-safe.
  std::vector<std::uint32_t> of_step(std::uint64_t step) const;

private:
  std::vector<std::uint32_t> usable_;
  std::vector<std::string> names_;
  mutable DataOrder order_; ///< caches epochs
};

} // namespace troupe::models
