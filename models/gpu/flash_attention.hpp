// Fused attention of packed sequences, forward and backward: one kernel call
// for all of them, without stored scores. This file holds what surrounds the
// call and needs no GPU: which attention is supported, where each sequence's
// queries and keys begin, and which keys are duplicated.
//
// A sequence that continues another (models/transformer/shared_prompt.hpp) has
// more keys than queries, and the kernel aligns its last query with its last
// key. So the keys of the continued sequence are copied in front of those of
// each sequence that continues it; its queries, and all else of its tokens, are
// still computed once.
//
// Precision: "sums stay fp32" holds inside (scores, softmax and its sums are
// fp32), but probabilities are rounded to the operands' type before they
// multiply values, and the outputs (context, gradients of q, k and v; for heads
// that share keys before these are added up) are rounded once more.
//
// T packed tokens, K keys, A heads, G key-value heads, D head dim, N sequences.
#pragma once

#include "models/kernels/attention.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace troupe::models {

/// Keys copied in front of a sequence that continues their sequence.
struct CopiedKeys {
  std::int64_t token = 0; ///< first token copied
  std::int64_t key = 0;   ///< index of its copied key
  std::int64_t count = 0;

  bool operator==(const CopiedKeys&) const = default;
};

/// Sequences as the kernel sees them: those that have tokens.
struct FlashSequences {
  std::vector<std::int32_t> query_starts; ///< [N+1] offsets into T
  std::vector<std::int32_t> key_starts;   ///< [N+1] offsets into K
  std::vector<std::int64_t> key_tokens;   ///< [K] the token of each key
  std::vector<std::int64_t> token_keys;   ///< [T] the key of each token itself
  std::vector<CopiedKeys> copies;         ///< empty: keys are the tokens
  std::int64_t most_queries = 0;          ///< longest sequence
  std::int64_t most_keys = 0;

  explicit FlashSequences(const AttentionShape& shape);

private:
  /// Appends the keys of tokens `begin` to `end - 1`.
  void append(std::int64_t begin, std::int64_t end);
};

struct FlashCall {
  at::Tensor queries_TAD; ///< in the kernel's type; rows may have strides
  at::Tensor keys_KGD;
  at::Tensor values_KGD;
  at::Tensor query_starts; ///< i32, on the device
  at::Tensor key_starts;
  std::int64_t most_queries = 0;
  std::int64_t most_keys = 0;
  double scale = 1;
  /// Keys that a query sees in addition to its own position: the last ones
  /// before it; -1: all.
  std::int64_t seen_before = -1;
};

struct FlashContext {
  at::Tensor context_TAD; ///< in the kernel's type
  at::Tensor lse_AT;      ///< f32
};

struct FlashGradients {
  at::Tensor queries_TAD;
  at::Tensor keys_KGD;
  at::Tensor values_KGD;
};

class FlashKernel {
public:
  virtual ~FlashKernel() = default;
  virtual at::ScalarType operands() const = 0;
  virtual FlashContext forward(const FlashCall& call) const = 0;
  /// Computes gradients; `found` is the result of `forward`, in the same types.
  virtual FlashGradients backward(const FlashCall& call,
                                  const FlashContext& found,
                                  const at::Tensor& d_context_TAD) const = 0;
};

/// Returns true if a fused kernel of bf16 operands can compute this: scores
/// without a cap, heads of whole vectors. Otherwise the plain path is used.
bool flash_takes(const AttentionShape& shape);

/// Returns true if a fused kernel takes heads of this size, with such a cap of
/// their scores.
bool flash_takes_heads(std::int64_t head_dim, float cap);

/// Returns ATen's flash attention in bf16, for NVIDIA GPUs from Ampere on.
const FlashKernel& aten_flash();

} // namespace troupe::models
