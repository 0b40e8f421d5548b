// How many bytes one device stores while a batch passes through its part of
// the stack: the buffers of models/transformer/transformer, of its gradient and
// of the head, one by one, in the order in which the engine allocates them;
// buffers freed before the end count where they are largest. Tokens are those
// of a packed batch, none of them shared between the sequences of a prompt.
#pragma once

#include "config/base/defaults.hpp"
#include "config/base/strategy.hpp"
#include "config/model/model_shape.hpp"
#include "plans/memory/stored_types.hpp"

#include <cstdint>

namespace troupe::plans {

/// A stage's MLPs: their widths on one device, and which layers have experts.
struct StageMlps {
  std::uint64_t dense = 0;  ///< of layers without experts
  std::uint64_t shared = 0; ///< beside experts
  std::uint64_t expert = 0; ///< of one expert
  /// Width per token and expert that it chose: a part of each expert, or all of
  /// it for a part of the tokens.
  std::uint64_t chosen = 0;
  std::uint64_t experts = 0; ///< of one layer
  std::uint64_t expert_layers = 0;
};

/// The part of a model that one stage computes on each of its tensor peers.
struct StackPart {
  StackPart(const ModelShape& shape, const Strategy& strategy,
            std::uint32_t stage);

  const ModelShape& whole;
  std::uint32_t tp = 1;
  bool splits_tokens = false; ///< of the residual stream, over tensor peers
  bool first_stage = true;
  bool last_stage = true;
  /// Sizes on this device; widths in elements per token.
  std::uint64_t layers = 0;
  std::uint64_t hidden = 0;
  std::uint64_t heads = 0;
  std::uint64_t queries = 0; ///< heads times their dim
  std::uint64_t keys = 0;    ///< the same for values
  StageMlps mlps;
  std::uint64_t vocab = 0;

  std::uint64_t qkv() const {
    return queries + 2 * keys;
  }
  /// Returns the width of the products before an MLP's activation.
  std::uint64_t gate_up(std::uint64_t inner_width) const {
    return (whole.gated_mlp ? 2 : 1) * inner_width;
  }
  std::uint64_t dense_layers() const {
    return layers - mlps.expert_layers;
  }
  /// Returns the largest width of an MLP for all tokens.
  std::uint64_t widest() const;
  /// Returns the elements of the weights that generation multiplies with.
  std::uint64_t matrix_elements() const;
};

/// A batch in a pass.
struct PassTokens {
  std::uint64_t tokens = 1;
  std::uint64_t wanted = 1; ///< of them, tokens whose log-probability is needed
  /// With context parallelism, tokens whose keys and values are gathered: those
  /// of all ranks of its group.
  std::uint64_t gathered = 0;
  /// Logits that are computed at a time.
  std::uint64_t logits_at_once = defaults::logits_at_once;
  /// Rows of experts that are gathered for a product at a time.
  std::uint64_t grouped_rows_at_once = defaults::grouped_rows_at_once;
};

/// Returns the bytes of a pass without gradients.
std::uint64_t inference_pass_bytes(const StackPart& part, PassTokens batch,
                                   const StoredTypes& types);

struct TrainPass {
  PassTokens batch = {};
  std::uint32_t in_flight = 1; ///< batches between forward and backward
  bool recompute = false;      ///< layers store only their inputs
};
/// Returns the bytes from the first forward to the last backward.
std::uint64_t train_pass_bytes(const StackPart& part, const TrainPass& pass,
                               const StoredTypes& types);

struct DecodePass {
  std::uint64_t rows = 1;  ///< tokens of a pass, of prompts and responses
  std::uint64_t draws = 1; ///< responses that get a token
};
/// Returns the bytes of generation's buffers besides its cache.
std::uint64_t decode_pass_bytes(const StackPart& part, DecodePass pass,
                                const StoredTypes& types);

} // namespace troupe::plans
