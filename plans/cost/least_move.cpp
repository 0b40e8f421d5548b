#include "plans/cost/least_move.hpp"

#include "plans/cost/hardware.hpp"
#include "plans/weights/stage_layers.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Returns the bytes of the largest stage before it is cut.
double largest_stage(const UnitBytes& model, std::uint32_t pp) {
  const StageLayers layers(static_cast<std::uint32_t>(model.units.size() - 2),
                           pp, model.costs);
  const auto embedding = model.units.front();
  const auto layer
    = *std::min_element(model.units.begin() + 1, model.units.end() - 1);
  if (pp == 1)
    return embedding + layers.last() * layer + model.units.back();
  const auto head = model.units.back() + (model.tied ? embedding : 0);
  return std::max({embedding + layers.count(0) * layer,
                   layers.most_before() * layer, layers.last() * layer + head});
}

/// Returns the largest number of stages of which a node holds devices.
double most_stages(const Strategy& strategy, std::uint32_t node_size) {
  const auto stage = strategy.dp * strategy.tp; // devices
  if (stage % node_size == 0)
    return 1;
  const auto most
    = node_size % stage == 0 ? node_size / stage : (node_size - 1) / stage + 2;
  return std::min(most, strategy.pp);
}

double shares_of(const Strategy& strategy) {
  return strategy.zero == Zero::z3 ? strategy.dp : 1;
}

} // namespace

double least_move_seconds(const UnitBytes& model, const Strategy& source,
                          const Strategy& target, std::uint32_t node_size,
                          const Hardware& hardware, double sent_share) {
  const auto from = largest_stage(model, source.pp);
  const auto to = largest_stage(model, target.pp);
  const auto from_cuts = source.tp * shares_of(source);
  const auto to_cuts = target.tp * shares_of(target);
  const auto both = std::min(from, to);
  // a device of the largest stage: what it lacks, and what its node lacks
  const auto wanted = to / to_cuts;
  const auto kept = both / std::max(from_cuts, to_cuts);
  const auto stages = most_stages(source, node_size);
  const auto on_node = std::min(stages * both / to_cuts, node_size * kept);
  const auto lacks = wanted - kept;
  const auto far = wanted - on_node;
  if (lacks <= 1e-9 * wanted)
    return 0; // perhaps nothing moves
  // what nodes lack of all stages comes from the devices of the source
  double model_bytes = 0;
  for (const auto unit : model.units)
    model_bytes += unit;
  const auto copies = target.dp / shares_of(target);
  const auto all_far = copies * (model_bytes - target.pp * stages * from);
  const auto intra_Bps
    = hardware.move_Bps > 0 ? hardware.move_Bps : hardware.intra_Bps;
  const auto inter_Bps = hardware.inter_Bps / sent_share;
  return hardware.move_s
         + std::max({lacks / (intra_Bps + inter_Bps), far / inter_Bps,
                     all_far / source.num_devices() / inter_Bps});
}

} // namespace troupe::plans
