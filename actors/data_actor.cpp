#include "actors/data_actor.hpp"

namespace troupe::actors {

namespace {

DataBatch batch_of(DataSetup& setup, StepId step) {
  DataBatch batch;
  batch.rows = setup.order.batch(step.value);
  batch.epoch = static_cast<std::uint32_t>(setup.order.epoch_of(step.value));
  batch.tokens.assign(batch.rows.size(), 0);
  const net::Rows rows = setup.dataset->rows(batch.rows, SampleId{0});
  for (const auto& column : rows.columns)
    for (std::size_t i = 0; i < batch.rows.size(); ++i)
      if (column.dtype == DType::i32)
        batch.tokens[i] += column.lengths[i];
  return batch;
}

} // namespace

DataActor::behavior_type data_actor(Self<DataActor, DataState> self,
                                    DataSetup setup) {
  self->state.setup.emplace(std::move(setup));
  return {
    [=](next_atom, const Context& context, const NextOrder&) {
      Answer<DataBatch> answer{self, context};
      answer.deliver(batch_of(*self->state.setup, context.step));
      return answer.promise();
    },
  };
}

} // namespace troupe::actors
