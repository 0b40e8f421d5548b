// Engine's entry points to generation. Packed weights and caches are freed when
// the call ends, to leave the device memory to training or scoring.
#include "models/engine/conversation.hpp"
#include "models/engine/engine_impl.hpp"
#include "models/generate/generator.hpp"
#include "models/sync/gathered_weights.hpp"

namespace troupe::models {

namespace {

/// Generates the responses of one call.
class Answering {
public:
  Answering(Engine::Impl& engine, const RunContext& context)
    : gathered_(gathered(engine, context)),
      generator_(engine.shape,
                 gathered_ ? gathered_->weights() : engine.weights,
                 GeneratorLimits{}, engine.backend) {}

  Generator& generator() {
    return generator_;
  }

private:
  static std::unique_ptr<const GatheredWeights>
  gathered(Engine::Impl& engine, const RunContext& context) {
    engine.backend.enter();
    engine.refresh_rounded();
    if (!plans::cuts_weights(engine.spec.strategy))
      return nullptr;
    return std::make_unique<const GatheredWeights>(
      engine.part, engine.parameters, engine.spec.dtype, context.groups,
      engine.backend);
  }

  std::unique_ptr<const GatheredWeights> gathered_; ///< with z3 only
  Generator generator_;
};

} // namespace

GenerateOptions
Engine::Impl::resolved_options(const GenerateOptions& options) const {
  GenerateOptions resolved = options;
  if (resolved.stop_ids.empty())
    resolved.stop_ids = shape.ends();
  return resolved;
}

net::Rows Engine::generate(const net::Rows& prompts,
                           const GenerateOptions& options,
                           RunContext& context) {
  return Answering(*impl_, context)
    .generator()
    .run(prompts, impl_->resolved_options(options), context);
}

void Engine::generate(std::span<const ResponseBatch> batches,
                      const GenerateOptions& options, RunContext& context,
                      const GenerateEvents& events) {
  Answering(*impl_, context)
    .generator()
    .run_batches(batches, impl_->resolved_options(options), context, events);
}

void Engine::converse(const net::Rows& prompts, const GenerateOptions& options,
                      TurnQueue* turns, RunContext& context) {
  const SpeakingEngine alone{*this, options, context};
  models::converse({&alone, 1}, prompts, turns);
}

void converse(std::span<const SpeakingEngine> speakers,
              const net::Rows& prompts, TurnQueue* turns) {
  std::vector<std::unique_ptr<Answering>> answering;
  std::vector<GenerateOptions> options;
  for (const auto& one : speakers) {
    auto& impl = *one.engine.impl_;
    answering.push_back(std::make_unique<Answering>(impl, one.context));
    options.push_back(impl.resolved_options(one.options));
  }
  if (prompts.samples.empty())
    return;
  std::vector<Speaker> generators;
  for (std::size_t i = 0; i < speakers.size(); ++i)
    generators.push_back(
      {answering[i]->generator(), options[i], speakers[i].context});
  converse(prompts, generators, turns);
}

void Engine::weights_changed() {
  impl_->parameters.changed();
}

} // namespace troupe::models
