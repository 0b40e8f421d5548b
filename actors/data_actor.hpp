// Which rows of the data set a step trains on. A pure function of (seed, step):
// the position in the data is a number of rows, epochs are permutations, so a
// resumed run and any plan see the same rows (I1, I8).
// Parent: the session; it holds the data set's index only, no rows.
#pragma once

#include "actors/ask.hpp"
#include "models/dataset.hpp"

#include <memory>

namespace troupe::actors {

struct DataSetup {
  std::shared_ptr<const models::Dataset> dataset;
  std::uint32_t batch_size = 1; ///< rows a step
  std::uint64_t seed = 1;
  bool shuffle = true;
};

/// The rows of step `step`: positions step*batch .. in the epochs' orders.
DataBatch data_batch(const DataSetup& setup, StepId step);

struct DataState {
  std::string name = "data";
  DataSetup setup;
};

DataActor::behavior_type data_actor(Self<DataActor, DataState> self,
                                    DataSetup setup);

} // namespace troupe::actors
