#include "models/gathered_weights.hpp"

#include "models/model_part.hpp"
#include "models/unit_cut.hpp"

namespace troupe::models {

namespace {

ModelPart uncut(const ModelPart& part) {
  Strategy strategy = part.strategy;
  strategy.zero = Zero::none;
  return {part.whole, strategy, part.where};
}

} // namespace

GatheredWeights::GatheredWeights(const ModelPart& part,
                                 const Parameters& parameters, DType operands,
                                 net::Collectives& dp,
                                 const net::BlockMemory* memory)
  : whole_(uncut(part), /*trainable=*/false, memory, net::PageSharing::none),
    weights_(weights_of(uncut(part), whole_, Plane::weight)) {
  weights_.operands = operands;
  gather_plane(part, parameters.plane(Plane::weight).data(),
               whole_.plane(Plane::weight).data(), dp);
}

} // namespace troupe::models
