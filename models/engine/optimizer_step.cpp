#include "models/engine/optimizer_step.hpp"

#include "config/trace/trace.hpp"
#include "models/engine/engine_impl.hpp"
#include "models/engine/lr_schedule.hpp"
#include "net/collectives/collectives.hpp"

#include <cmath>

namespace troupe::models {

void optimizer_step(Engine::Impl& impl, const RunContext& context,
                    const std::string& prefix, MetricSums& sums) {
  static const trace::Name name = trace::name("optimizer");
  const trace::Span span(context.track, name, context.step.value);
  const double squared_norm = impl.adam->squared_norm(); // waits
  context.groups.meet(); // before the weights change
  const double norm = std::sqrt(impl.sync->sum_over_parts(squared_norm));
  const double rate
    = learning_rate(impl.spec.optimizer, impl.spec.total_optimizer_steps,
                    impl.steps.optimizer_steps);
  ++impl.steps.optimizer_steps;
  const bool finite = std::isfinite(norm);
  if (finite) {
    impl.adam->apply(rate, impl.adam->clip_scale(norm),
                     ++impl.steps.applied_steps);
    impl.adam->balance();
    impl.sync->weights_changed();
  }
  if (context.groups.dp != nullptr && context.groups.dp->rank() != 0)
    return;
  if (finite)
    sums.add(prefix + "grad_norm", norm, 1);
  sums.add(prefix + "lr", rate, 1);
  sums.add_total(prefix + "skipped_steps", finite ? 0 : 1);
}

} // namespace troupe::models
