// The engine's door to generation: made at the first call, so that roles that
// never generate keep no packed weights.
#include "config/error.hpp"
#include "models/generator.hpp"
#include "models/internal/engine_impl.hpp"

namespace troupe::models {

Generator& Engine::Impl::ready_generator() {
  TROUPE_CHECK(!plans::cuts_weights(spec.strategy),
               "generation under z3: the plan's check refuses it");
  if (!generator)
    generator
      = std::make_unique<Generator>(shape, weights, GeneratorLimits{}, compute);
  return *generator;
}

GenerateOptions
Engine::Impl::resolved_options(const GenerateOptions& options) const {
  GenerateOptions resolved = options;
  if (resolved.stop_ids.empty())
    resolved.stop_ids = shape.eos;
  return resolved;
}

net::Rows Engine::generate(const net::Rows& prompts,
                           const GenerateOptions& options,
                           RunContext& context) {
  return impl_->ready_generator().run(prompts, impl_->resolved_options(options),
                                      context);
}

void Engine::generate(std::span<const net::Rows> batches,
                      const GenerateOptions& options, RunContext& context,
                      const GenerateEvents& events) {
  impl_->ready_generator().run_batches(
    batches, impl_->resolved_options(options), context, events);
}

void Engine::converse(const net::Rows& prompts, const GenerateOptions& options,
                      TurnQueue* turns, RunContext& context) {
  impl_->ready_generator().converse(prompts, impl_->resolved_options(options),
                                    context, turns);
}

void Engine::weights_changed() {
  impl_->parameters.changed();
  if (impl_->generator)
    impl_->generator->weights_changed();
}

} // namespace troupe::models
