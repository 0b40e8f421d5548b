#include "runtime/session/data_actors.hpp"

#include "actors/worker_base/worker_context.hpp"
#include "config/base/error.hpp"

#include <algorithm>
#include <memory>

namespace troupe::runtime {

actors::DataActor spawn_data(caf::actor_system& system, const RunBasis& basis) {
  const Settings& settings = basis.run.work.settings;
  if (basis.workflow.dataset_keys.empty()
      || basis.run.mode() == RunMode::evaluate)
    return {};
  const auto& dataset = basis.run.data.rows.data;
  TROUPE_CHECK(dataset, "a run that reads data has opened it");
  const auto order = models::data_order(settings, dataset->report().usable);
  return system.spawn(actors::data_actor, actors::DataSetup{dataset, order});
}

actors::DataActor spawn_evaluation_data(caf::actor_system& system,
                                        const RunBasis& basis) {
  const Settings& settings = basis.run.work.settings;
  const auto dataset = std::make_shared<const models::Dataset>(
    actors::open_evaluation(settings, basis.workflow));
  auto rows = dataset->size();
  if (settings.eval.max_rows > 0)
    rows = std::min(rows, static_cast<std::uint32_t>(settings.eval.max_rows));
  const models::DataOrder order{rows, rows, settings.run.seed,
                                /*shuffle=*/false};
  return system.spawn(actors::data_actor, actors::DataSetup{dataset, order});
}

} // namespace troupe::runtime
