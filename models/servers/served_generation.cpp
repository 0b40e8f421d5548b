#include "models/servers/served_generation.hpp"

#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/model/model_shape.hpp"
#include "config/trace/trace.hpp"
#include "models/engine/engine.hpp"
#include "models/generate/sequences.hpp"
#include "models/parallel/parameters.hpp"
#include "models/servers/make_server.hpp"
#include "models/servers/served_samples.hpp"
#include "models/servers/served_turns.hpp"
#include "plans/memory/call_memory.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models {

namespace {

/// Times that one generation may find its server lost.
constexpr std::uint64_t most_restarts = 3;

/// Returns fixed tokens, spread over the vocabulary.
std::vector<std::int32_t> checked_ids(const ModelShape& shape) {
  constexpr std::int64_t stride = 7919; // a prime
  const auto count
    = std::min(plans::served_check_tokens, shape.context_tokens() - 1);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(
      static_cast<std::int32_t>((13 + i * stride) % shape.vocab_size));
  return ids;
}

/// Returns the engine's own log-probabilities [L] of these tokens.
std::vector<float> own_scores(Engine& engine,
                              const std::vector<std::int32_t>& ids,
                              RunContext& context) {
  const auto length = static_cast<std::uint32_t>(ids.size());
  net::Rows rows;
  rows.samples = {SampleId{}};
  rows.add(net::make_column("sequence_ids", DType::i32, {length}, ids.data()));
  const auto scored = engine.infer("logprobs", rows, context);
  const auto scores = scored.at("logprobs").as<float>();
  return {scores.begin(), scores.end()};
}

} // namespace

ServedGeneration::ServedGeneration(ServedSpec spec)
  : spec_(std::move(spec)),
    server_(make_server(spec_.server)) {}

void ServedGeneration::verify(Engine& engine, RunContext& context) {
  static const trace::Name name = trace::name("verify server");
  const trace::Span span(context.track, name, context.step.value);
  const auto ids = checked_ids(engine.shape());
  const auto theirs = server_->score(ids, context);
  const auto ours = own_scores(engine, ids, context);
  double gap = 0;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    const double here = std::abs(double{theirs[i]} - double{ours[i]});
    gap = std::isnan(here) ? INFINITY : std::max(gap, here);
  }
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
  {
    static const trace::Name copying = trace::name("copy for server");
    const trace::Span span(context.track, copying, context.step.value);
    weights_.take(engine.parameters());
  }
  {
    static const trace::Name updating = trace::name("update server");
    const trace::Span span(context.track, updating, context.step.value,
                           weights_.num_bytes());
    server_->update(weights_, version, context);
  }
  report_.update_s
    += std::chrono::duration<double>(net::HttpClock::now() - begin).count();
  report_.updated_bytes += weights_.num_bytes();
  verify(engine, context);
  version_ = version;
}

void ServedGeneration::use_server(Engine& engine, const std::string& version,
                                  RunContext& context,
                                  const std::function<void()>& work) {
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

void ServedGeneration::make_ready(Engine& engine, const std::string& version,
                                  RunContext& context) {
  use_server(engine, version, context, [] {});
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

} // namespace troupe::models
