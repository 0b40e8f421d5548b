// Generation with continuous batching: prompts wait for a slot of the KV cache,
// every pass through the model mixes one token of each running response with as
// many waiting prompt tokens as the budget allows, and the slot of a finished
// response goes to the next prompt. A sample's response depends only on its
// prompt, its id and the options, not on the other samples in the batch (I2).
#pragma once

#include "config/base/ids.hpp"
#include "config/model/model_shape.hpp"
#include "models/generate/generate_events.hpp"
#include "models/generate/generate_options.hpp"
#include "models/generate/response_batch.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/transformer.hpp"
#include "net/base/rows.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace troupe::models {

class TurnQueue;

struct GeneratorLimits {
  /// Most bytes of the KV cache; the number of slots follows from it.
  std::uint64_t kv_cache_bytes = std::uint64_t{1} << 30;
};

class Generator {
public:
  /// Keeps references to shape, weights and backend.
  Generator(const ModelShape& shape, const Weights& weights,
            GeneratorLimits limits = {}, Backend& backend = host_backend());
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  /// Notifies of new values in the weights: the next run packs them again.
  void weights_changed();

  /// Generates from `prompt_ids` i32[P] the columns sequence_ids i32[L],
  /// loss_mask u8[L] (1 on new tokens), logprobs f32[L] (of the model at the
  /// temperature, unless options.record says otherwise; if masked,
  /// kept_counts i32[L] and kept_ids i32 too), truncated u8[1]. Noise is named
  /// by (options.seed, context.step, sample id, position, id). Throws
  /// FailureError: aborted if stopped, bad_input for a prompt that is empty,
  /// too long or contains unknown ids, out_of_memory if not even one sequence
  /// fits the cache, numerics for non-finite logits.
  net::Rows run(const net::Rows& prompts, const GenerateOptions& options,
                const RunContext& context);
  /// Generates batches one after another without a pause: there are slots for
  /// the largest, and prompts of the next one take those that become free. So
  /// batches end one by one, the rows of each arrive once all its samples have
  /// finished, and no pass waits for a batch's longest response.
  void run_batches(std::span<const net::Rows> batches,
                   const GenerateOptions& options, const RunContext& context,
                   const GenerateEvents& events);
  /// Generates batches, each up to its own limit of new tokens; those of
  /// several steps are slices, which run side by side: there are slots for all
  /// of them. Responses that have ended are passed on as they are.
  void run_batches(std::span<const ResponseBatch> batches,
                   const GenerateOptions& options, const RunContext& context,
                   const GenerateEvents& events);

  /// Generates turns of conversations on request, until the queue is closed:
  /// each continues the current tokens of its sample. Samples begin with their
  /// prompts; a sample's limits are those of `run` over all its turns. Keys and
  /// values stay in the cache between turns while there is room, so that only
  /// new tokens are prefilled. `turns` is passed on the dp replica's first
  /// device (tensor rank 0 of stage 0), null on its others. The tokens of a
  /// conversation depend only on its own turns (I2). Throws as `run`.
  void converse(const net::Rows& prompts, const GenerateOptions& options,
                const RunContext& context, TurnQueue* turns);

  /// Returns the tokens that went through this stage in the last run: each
  /// prompt once, however many samples it has, and the responses.
  std::uint64_t fed_tokens() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::models
