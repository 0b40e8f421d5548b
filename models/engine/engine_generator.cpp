#include "models/engine/engine_generator.hpp"

#include "models/engine/engine_impl.hpp"

namespace troupe::models {

namespace {

std::unique_ptr<GatheredWeights> engine_gathered(Engine::Impl& engine) {
  if (!plans::cuts_weights(engine.spec.strategy))
    return nullptr;
  return std::make_unique<GatheredWeights>(engine.part, engine.parameters,
                                           engine.spec.dtype, engine.backend);
}

} // namespace

EngineGenerator::EngineGenerator(Engine::Impl& engine,
                                 const GenerateOptions& options)
  : gathered_(engine_gathered(engine)),
    limits_(limits_of(options)),
    generator_(engine.shape, gathered_ ? gathered_->weights() : engine.weights,
               GeneratorLimits{}, engine.backend) {}

void EngineGenerator::take_weights(const Groups& groups) {
  if (gathered_)
    gathered_->gather(groups);
  generator_.weights_changed();
}

} // namespace troupe::models
