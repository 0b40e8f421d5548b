// The engine's door to generation. What it packs and caches goes when the call
// ends: the device has the room for who trains or scores next.
#include "config/error.hpp"
#include "models/generator.hpp"
#include "models/internal/engine_impl.hpp"

namespace troupe::models {

Generator Engine::Impl::make_generator() const {
  TROUPE_CHECK(!plans::cuts_weights(spec.strategy),
               "generation under z3: the plan's check refuses it");
  return Generator(shape, weights, GeneratorLimits{}, compute);
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
  return impl_->make_generator().run(prompts, impl_->resolved_options(options),
                                     context);
}

void Engine::generate(std::span<const net::Rows> batches,
                      const GenerateOptions& options, RunContext& context,
                      const GenerateEvents& events) {
  impl_->make_generator().run_batches(batches, impl_->resolved_options(options),
                                      context, events);
}

void Engine::converse(const net::Rows& prompts, const GenerateOptions& options,
                      TurnQueue* turns, RunContext& context) {
  impl_->make_generator().converse(prompts, impl_->resolved_options(options),
                                   context, turns);
}

void Engine::weights_changed() {
  impl_->parameters.changed();
}

} // namespace troupe::models
