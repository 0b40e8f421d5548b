// The engine's door to generation: made at the first call, so that roles that
// never generate keep no packed weights.
#include "config/error.hpp"
#include "models/generator.hpp"
#include "models/internal/engine_impl.hpp"

namespace troupe::models {

net::Rows Engine::generate(const net::Rows& prompts,
                           const GenerateOptions& options,
                           RunContext& context) {
  TROUPE_CHECK(!plans::cuts_weights(impl_->spec.strategy),
               "generation under z3: the plan's check refuses it");
  if (!impl_->generator)
    impl_->generator
      = std::make_unique<Generator>(impl_->shape, impl_->weights);
  GenerateOptions resolved = options;
  if (resolved.stop_ids.empty())
    resolved.stop_ids = impl_->shape.eos;
  return impl_->generator->run(prompts, resolved, context);
}

void Engine::weights_changed() {
  impl_->parameters.changed();
  if (impl_->generator)
    impl_->generator->weights_changed();
}

} // namespace troupe::models
