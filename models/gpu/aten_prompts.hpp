// Attention of prompts during generation by a fused kernel: the calls of
// prompt_calls.hpp over tensors of a device. Keys and values that are cached
// already are copied from their pages, layer by layer.
//
// R tokens of a pass, A heads, G key-value heads, D head dim.
#pragma once

#include "models/gpu/aten_parts.hpp"
#include "models/gpu/aten_views.hpp"
#include "models/kernels/decode_attention.hpp"

#include <ATen/core/Tensor.h>

namespace troupe::models {

/// Returns true if the kernel computes this attention: of heads that it takes,
/// and of a cache in the type of its operands.
bool fuses_prompts(const AtenOptions& options, const DecodeAttention& what,
                   const KvCache& cache);

/// Computes the context of all groups of several tokens, whose keys and values
/// are cached. Tables are those of the pass, so all its layers use the same.
void attend_prompts_fused(const AtenViews& on, const DecodeAttention& what,
                          std::span<const DecodeGroup> groups,
                          const AtenHeads& heads, KvCache& cache,
                          const at::Tensor& context_RAD);

} // namespace troupe::models
