// Attention of generation by kernels of our own, where they take the shape:
// what precedes it in one launch, then two for all tokens that are alone of
// their sequences.
#pragma once

#include "models/kernels/decode_attention.hpp"

#include <c10/core/Device.h>

namespace troupe::models {

/// Returns true if the kernels compute this shape and type.
bool takes_own_decode(const DecodeAttention& what, const KvCache& cache,
                      ConstTypedPtr qkv_RX);

/// Norms, rotates and caches the heads of all tokens, and attends with those
/// that are alone of their sequences.
void own_decode(at::Device device, const DecodeAttention& what,
                const DecodeTokens& tokens, KvCache& cache, TypedPtr qkv_RX,
                TypedPtr context_RX);

} // namespace troupe::models
