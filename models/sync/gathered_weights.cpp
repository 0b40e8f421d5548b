#include "models/sync/gathered_weights.hpp"

#include "models/parallel/local_model.hpp"
#include "models/parallel/zero1_partition.hpp"

namespace troupe::models {

namespace {

LocalModel uncut(const LocalModel& part) {
  Strategy strategy = part.strategy;
  strategy.zero = Zero::none;
  return {part.whole, strategy, part.where};
}

} // namespace

GatheredWeights::GatheredWeights(const LocalModel& part,
                                 const Parameters& parameters, DType operands,
                                 Backend& backend)
  : part_(part),
    parameters_(parameters),
    backend_(backend),
    whole_(uncut(part), /*trainable=*/false, backend.memory(),
           net::PageSharing::none, backend.storage(operands)),
    weights_(weights_of(uncut(part), whole_, Plane::weight)) {
  weights_.operands = operands;
}

void GatheredWeights::gather(const Groups& groups) {
  const auto [plane, rounded] = whole_.updated_weights();
  gather_plane(part_, backend_, parameters_.plane(Plane::weight).data(),
               {plane, rounded}, groups);
  whole_.rounded_gathered();
}

} // namespace troupe::models
