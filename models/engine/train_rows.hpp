// Rows that a training call has beside its samples, with a loss of their own:
// they are more sequences of the same optimizer steps, so one reduction, one
// clipping and one update cover both.
#pragma once

#include "models/engine/engine.hpp"
#include "net/base/rows.hpp"

namespace troupe::models {

struct TrainRows {
  /// Loss, temperature and mini-batches of these rows; the latter as many as
  /// the call's own.
  TrainSpec spec;
  net::Rows rows;
};

} // namespace troupe::models
