#include "models/servers/served_generation.hpp"

#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/trace/trace.hpp"
#include "models/engine/engine.hpp"
#include "models/engine/frozen_weights.hpp"
#include "models/kernels/aligned_floats.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"
#include "models/servers/make_server.hpp"
#include "models/servers/served_samples.hpp"
#include "models/servers/served_turns.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

/// Times that one generation may find its server lost.
constexpr std::uint64_t most_restarts = 3;

} // namespace

ServedGeneration::ServedGeneration(ServedSpec spec)
  : spec_(std::move(spec)),
    server_(make_server(spec_.server)) {}

void ServedGeneration::verify(RunContext& context) {
  static const trace::Name name = trace::name("verify server");
  const trace::Span span(context.track, name, context.step.value);
  const auto gap = own_.gap_to(server_->score(own_.ids(), context));
  report_.gap = std::max(report_.gap.value_or(0), gap);
  if (gap > spec_.most_gap)
    throw FailureError(
      {.code = Errc::refused,
       .who = server_->name(),
       .what = "its log-probabilities are not those of the weights it was "
               "given: they differ by up to "
               + std::to_string(gap) + " from our engine's, more than "
               + std::to_string(spec_.most_gap),
       .cause = ""});
}

/// Fills the memory file. What a replica's devices hold in parts is joined in
/// memory that is freed again: files may store matrices in another form.
void ServedGeneration::take_weights(Engine& engine) {
  const auto& lora = engine.shape().lora;
  if (!spec_.gather)
    return weights_.take(engine.parameters(), lora);
  const auto& shapes = engine.part().parameters;
  AlignedFloats whole(padded_offsets(shapes).size);
  const auto plane = std::as_writable_bytes(std::span<float>(
    whole.data(), static_cast<std::size_t>(padded_offsets(shapes).size)));
  spec_.gather(plane);
  weights_.take(shapes, plane, lora);
}

/// Returns what adapters are added to, for a server that has none of ours yet.
/// It keeps them, so that they are in memory here only while they are sent.
std::optional<SentWeights>
ServedGeneration::take_base(const Engine& engine) const {
  if (!version_->empty() || !engine.shape().lora.exists())
    return std::nullopt;
  std::optional<SentWeights> base(std::in_place);
  base->take(engine.whole_frozen()->parameters);
  return base;
}

/// Updates the server: a span of the device and one of the server, with an
/// arrow from the first to the second. Returns the bytes.
std::uint64_t ServedGeneration::send_weights(const SentWeights* base,
                                             const std::string& version,
                                             RunContext& context) {
  static const trace::Name updating = trace::name("update server");
  static const trace::Name taking = trace::name("take weights");
  const auto own = trace::track(server_->name(), trace::TrackKind::actor);
  const auto step = context.step.value;
  const auto bytes
    = weights_.num_bytes() + (base != nullptr ? base->num_bytes() : 0);
  const auto flow = trace::next_flow();
  const trace::Span device(context.track, updating, step, bytes);
  trace::send(context.track, taking, flow, step, bytes);
  const trace::Span server(own, taking, step, bytes);
  trace::receive(own, taking, flow, step);
  server_->update(weights_, base, version, context);
  return bytes;
}

/// Brings the server up, and to `version`. It is checked whenever its weights
/// have changed, before any token is drawn.
void ServedGeneration::make_current(Engine& engine, const std::string& version,
                                    RunContext& context) {
  if (version_ == version)
    return;
  if (!version_) {
    static const trace::Name starting = trace::name("start server");
    const trace::Span span(context.track, starting, context.step.value);
    server_->start(context);
    version_ = ""; // of the model's files: none of ours
  }
  const auto begin = net::HttpClock::now();
  std::optional<SentWeights> base;
  {
    static const trace::Name copying = trace::name("copy for server");
    const trace::Span span(context.track, copying, context.step.value);
    take_weights(engine);
    base = take_base(engine);
  }
  const auto bytes = send_weights(base ? &*base : nullptr, version, context);
  report_.update_s
    += std::chrono::duration<double>(net::HttpClock::now() - begin).count();
  report_.updated_bytes += bytes;
  base.reset();
  verify(context);
  version_ = version;
}

void ServedGeneration::use_server(Engine& engine, const std::string& version,
                                  RunContext& context,
                                  const std::function<void()>& work) {
  own_.compute(engine, version, context); // others wait for it in there
  for (std::uint64_t restarts = 0;; ++restarts) {
    try {
      make_current(engine, version, context);
      return work();
    } catch (const FailureError& error) {
      version_.reset();
      // others that it works for may have lost peers of their own
      if (error.failure().code != Errc::peer_lost
          || error.failure().who != server_->name() || !server_->is_ours()
          || restarts == most_restarts)
        throw;
      ++report_.restarts;
      log::models.warn(std::string(error.what()) + "; starting it again");
    }
  }
}

void ServedGeneration::generate(Engine& engine, const std::string& version,
                                std::span<const ResponseBatch> batches,
                                const GenerateOptions& options,
                                RunContext& context,
                                const GenerateEvents& events) {
  own_.compute(engine, version, context); // also where there are no prompts
  ServedSamples samples(engine.shape(), batches, options, version, events);
  if (samples.open_requests().empty()) // no prompts here, or no room after them
    return;
  use_server(engine, version, context, [&] {
    const auto requests = samples.open_requests();
    server_->generate(requests, options, context,
                      [&](std::size_t i, ServerAnswer answer) {
                        samples.take(requests[i], std::move(answer));
                      });
  });
}

std::uint64_t ServedGeneration::make_ready(Engine& engine,
                                           const std::string& version,
                                           RunContext& context) {
  const auto before = report_.updated_bytes;
  use_server(engine, version, context, [] {});
  return report_.updated_bytes - before;
}

void ServedGeneration::converse(Engine& engine, const std::string& version,
                                const ResponseBatch& prompts,
                                const GenerateOptions& options,
                                RunContext& context, TurnQueue& turns) {
  ServedTurns talks(engine.shape(), prompts, options, version, turns);
  use_server(engine, version, context, [&] {
    server_->generate_coming(talks.requests(), options, context,
                             [&](std::size_t i, ServerAnswer answer) {
                               talks.take(i, std::move(answer));
                             });
  });
}

void ServedGeneration::assist(Engine& engine, const std::string& version,
                              std::span<const ResponseBatch> batches,
                              RunContext& context,
                              const GenerateEvents& events) {
  own_.compute(engine, version, context);
  for (std::size_t i = 0; i < batches.size(); ++i)
    events.on_batch(i, {});
}

} // namespace troupe::models
