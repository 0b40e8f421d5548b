// Generation with continuous batching: prompts wait for a slot of the KV cache,
// every pass through the model mixes one token of each answer under way with as
// many waiting prompt tokens as the budget allows, and a finished answer's slot
// goes to the next prompt. What a sample gets depends on its prompt, its id and
// the options alone, not on the company it keeps (I2).
#pragma once

#include "config/ids.hpp"
#include "config/model_shape.hpp"
#include "models/generate_events.hpp"
#include "models/generate_options.hpp"
#include "models/run_context.hpp"
#include "models/transformer.hpp"
#include "net/rows.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace troupe::models {

class TurnQueue;

struct GeneratorLimits {
  /// Most memory of the KV cache; slots are made to fit.
  std::uint64_t kv_cache_bytes = std::uint64_t{1} << 30;
};

class Generator {
public:
  /// Keeps references to shape, weights and what computes.
  Generator(const ModelShape& shape, const Weights& weights,
            GeneratorLimits limits = {}, Compute& compute = host_compute());
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  /// The weights have new values: the next run packs them anew.
  void weights_changed();

  /// `prompt_ids` i32[P] -> sequence_ids i32[L], loss_mask u8[L] (1 on new
  /// tokens), logprobs f32[L] (of the model at the temperature, unfiltered),
  /// truncated u8[1]. Noise is named by (options.seed, context.step, sample id,
  /// position, id). Throws FailureError: aborted when stopped, bad_input for a
  /// prompt that is empty, too long or holds unknown ids, out_of_memory where
  /// not one sequence fits the cache, numerics for logits that are not finite.
  net::Rows run(const net::Rows& prompts, const GenerateOptions& options,
                const RunContext& context);
  /// Batches one after the other without a pause: there are slots for the
  /// largest, and prompts of the next one get those that become free. So
  /// batches end one by one, each one's rows come when all its samples have
  /// finished, and no pass waits for a batch's longest answer.
  void run_batches(std::span<const net::Rows> batches,
                   const GenerateOptions& options, const RunContext& context,
                   const GenerateEvents& events);

  /// Turns of conversations, as they are asked for, until the queue is closed:
  /// each continues what the sample has by then. Samples begin with their
  /// prompts; a sample's limits are those of `run` over all its turns. Keys and
  /// values stay in the cache between turns while there is room, so that only
  /// new tokens are fed. `turns` is that of the copy's first device (tensor
  /// rank 0 of stage 0), null on its others. A conversation gets the tokens
  /// that its own turns ask for, whatever the others do (I2). Throws as `run`.
  void converse(const net::Rows& prompts, const GenerateOptions& options,
                const RunContext& context, TurnQueue* turns);

  /// Tokens that went through this stage in the last run: each prompt once,
  /// however many samples it has, and the answers.
  std::uint64_t fed_tokens() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::models
