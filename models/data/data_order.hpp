// The rows that a step trains on, as a pure function of seed and step: the same
// on every machine and after every resume. Steps walk through the epochs'
// orders without a gap; a batch may span the end of one epoch and the start of
// the next, so every row is used once per epoch and none is dropped.
//
// Several files are one after the other, and so is their order that of one
// file, unless they have weights (models/data/mixture.hpp).
#pragma once

#include "models/data/mixture.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {
struct Settings;
} // namespace troupe

namespace troupe::models {

/// Returns a permutation of [0, num_rows): Fisher-Yates over Philox, keyed only
/// by `seed` and `epoch`.
std::vector<std::uint32_t> epoch_order(std::uint32_t num_rows,
                                       std::uint64_t seed, std::uint64_t epoch);

class DataOrder {
public:
  /// Creates an order with `num_rows` > 0 and `batch_rows` > 0; without
  /// `shuffle` every epoch is in file order. It ends after `num_epochs`; 0:
  /// never.
  DataOrder(std::uint32_t num_rows, std::uint32_t batch_rows,
            std::uint64_t seed, bool shuffle, std::uint64_t num_epochs = 0);
  /// Creates the order of a mixture, which never ends; an epoch is as many
  /// rows as all its files have.
  DataOrder(Mixture mixture, std::uint32_t batch_rows);

  /// Returns the rows of a step (from 0), in sample order: [batch_rows], fewer
  /// at the end. Not thread-safe: caches the last epoch's order.
  std::vector<std::uint32_t> batch(std::uint64_t step);
  /// Returns the epoch (from 0) of the step's first row.
  std::uint64_t epoch_of(std::uint64_t step) const;

private:
  const std::vector<std::uint32_t>& order_of(std::uint64_t epoch);

  std::uint32_t num_rows_;
  std::uint32_t batch_rows_;
  std::uint64_t seed_;
  bool shuffle_;
  std::uint64_t num_epochs_;
  std::uint64_t cached_epoch_ = UINT64_MAX;
  std::vector<std::uint32_t> cached_order_;
  std::optional<Mixture> mixture_;
};

/// Returns the order of a run's data set, one file with `num_rows` usable rows.
DataOrder data_order(const Settings& settings, std::uint32_t num_rows);
/// Returns the order of a run's data set with so many usable rows per file.
DataOrder data_order(const Settings& settings,
                     const std::vector<std::uint32_t>& usable);

} // namespace troupe::models
