// Engine's entry points to generation.
#include "models/engine/conversation.hpp"
#include "models/engine/engine_generator.hpp"
#include "models/engine/engine_impl.hpp"

#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::models {

namespace {

/// A call's generator: that of the calls before it, if the engine kept one with
/// these limits. Each dp rank has samples of its own, maybe none, so ranks of a
/// cp group do not meet.
class Answering {
public:
  /// Takes `kept`, or makes a new one.
  Answering(Engine::Impl& engine, std::unique_ptr<EngineGenerator>& kept,
            const GenerateOptions& options, const RunContext& context)
    : keeps_(engine.spec.keeps_generator),
      kept_(kept),
      context_(context),
      options_(engine.resolved_options(options)),
      generator_(std::move(kept)) {
    context_.groups.cp = nullptr;
    engine.backend.enter();
    engine.refresh_rounded();
    if (generator_ && !generator_->fits(options_))
      generator_.reset();
    if (!generator_)
      generator_ = std::make_unique<EngineGenerator>(engine, options_);
    generator_->take_weights(context_.groups);
  }

  Generator& generator() {
    return generator_->generator();
  }
  const GenerateOptions& options() const {
    return options_;
  }
  RunContext& context() {
    return context_;
  }
  /// Keeps the generator for the next call, if it may stay. That of a call that
  /// failed does not.
  void has_ended() {
    context_.groups.meet();
    if (keeps_)
      kept_ = std::move(generator_);
  }

private:
  const bool keeps_;
  std::unique_ptr<EngineGenerator>& kept_;
  RunContext context_;
  const GenerateOptions options_;
  std::unique_ptr<EngineGenerator> generator_;
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
  Answering call(*impl_, generator_, options, context);
  auto rows = call.generator().run(prompts, call.options(), call.context());
  call.has_ended();
  return rows;
}

void Engine::generate(std::span<const ResponseBatch> batches,
                      const GenerateOptions& options, RunContext& context,
                      const GenerateEvents& events) {
  Answering call(*impl_, generator_, options, context);
  call.generator().run_batches(batches, call.options(), call.context(), events);
  call.has_ended();
}

void Engine::converse(const net::Rows& prompts, const GenerateOptions& options,
                      TurnQueue* turns, RunContext& context) {
  const SpeakingEngine alone{*this, options, context};
  models::converse({&alone, 1}, prompts, turns);
}

void converse(std::span<const SpeakingEngine> speakers,
              const net::Rows& prompts, TurnQueue* turns) {
  std::deque<Answering> calls;
  for (const auto& one : speakers)
    calls.emplace_back(*one.engine.impl_, one.engine.generator_, one.options,
                       one.context);
  std::vector<Speaker> generators;
  for (Answering& call : calls)
    generators.push_back({call.generator(), call.options(), call.context()});
  if (!prompts.samples.empty())
    converse(prompts, generators, turns);
  for (Answering& call : calls)
    call.has_ended();
}

void Engine::weights_changed() {
  impl_->parameters.changed();
}

} // namespace troupe::models
