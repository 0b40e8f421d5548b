#include "actors/data_actor.hpp"

#include <numeric>

namespace troupe::actors {

DataBatch data_batch(const DataSetup& setup, StepId step) {
  const models::Dataset& dataset = *setup.dataset;
  const auto size = static_cast<std::uint64_t>(dataset.size());
  DataBatch batch;
  std::uint64_t position = std::uint64_t{step.value} * setup.batch_size;
  batch.epoch = static_cast<std::uint32_t>(position / size);
  auto epoch = ~std::uint64_t{0};
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < setup.batch_size; ++i, ++position) {
    if (position / size != epoch) {
      epoch = position / size;
      order = setup.shuffle ? dataset.epoch_order(setup.seed, epoch)
                            : std::vector<std::uint32_t>(size);
      if (!setup.shuffle)
        std::iota(order.begin(), order.end(), 0U);
    }
    batch.rows.push_back(order[position % size]);
  }
  for (const auto row : batch.rows)
    batch.tokens.push_back(dataset.tokens(row));
  return batch;
}

DataActor::behavior_type data_actor(Self<DataActor, DataState> self,
                                    DataSetup setup) {
  self->state.setup = std::move(setup);
  return {
    [=](next_atom, const Context& context, const NextOrder&) {
      Answer<DataBatch> answer{self, context};
      answer.deliver(data_batch(self->state.setup, context.step));
      return answer.promise();
    },
  };
}

} // namespace troupe::actors
