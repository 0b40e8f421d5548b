#include "actors/calls/data_actor.hpp"

namespace troupe::actors {

namespace {

DataBatch batch_of(DataSetup& setup, StepId step) {
  DataBatch batch;
  batch.rows = setup.order.batch(step.value);
  batch.epoch = static_cast<std::uint32_t>(setup.order.epoch_of(step.value));
  for (const auto row : batch.rows)
    batch.tokens.push_back(setup.dataset->num_tokens(row));
  return batch;
}

} // namespace

DataActor::behavior_type data_actor(Self<DataActor, DataState> self,
                                    DataSetup setup) {
  self->state.setup.emplace(std::move(setup));
  return {
    [=](next_atom, const Context& context, const NextOrder&) {
      Reply<DataBatch> reply{self, context};
      reply.deliver(batch_of(*self->state.setup, context.step));
      return reply.promise();
    },
  };
}

} // namespace troupe::actors
