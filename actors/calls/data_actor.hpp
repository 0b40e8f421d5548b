// Decides which rows of the data set a step trains on and reports how long they
// are: a pure function of seed and step (models::DataOrder), so a resumed run
// and any plan see the same rows (I1, I8).
// Parent: the session; it holds the data set's index only, no rows.
#pragma once

#include "actors/protocol/ask.hpp"
#include "models/data/data_order.hpp"
#include "models/data/dataset.hpp"

#include <memory>
#include <optional>

namespace troupe::actors {

struct DataSetup {
  std::shared_ptr<const models::Dataset> dataset;
  models::DataOrder order;
};

struct DataState {
  std::string name = "data";
  std::optional<DataSetup> setup;
};

DataActor::behavior_type data_actor(Self<DataActor, DataState> self,
                                    DataSetup setup);

} // namespace troupe::actors
