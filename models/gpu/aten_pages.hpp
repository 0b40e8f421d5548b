// A layer of the KV cache as tensors of a device, for attention by ATen's
// operations: writes the keys and values of tokens to their pages, and copies
// those of tokens, or of sequences, from theirs.
//
// R tokens, S sequences, G key-value heads, D head dim, K keys.
#pragma once

#include "models/kernels/decode_attention.hpp"

#include <ATen/core/Tensor.h>

namespace troupe::models {

/// Keys and values of tokens, as fused attention reads them.
struct AtenKeys {
  at::Tensor keys_KGD;
  at::Tensor values_KGD;
};

/// The first keys and values of sequences.
struct AtenCached {
  at::Tensor keys;   ///< [S * G, D, K]
  at::Tensor values; ///< [S * G, K, D]
};

class AtenPages {
public:
  AtenPages(at::Device device, const DecodeAttention& what, KvCache& cache);

  void write(const at::Tensor& slots_R, const at::Tensor& positions_R,
             const at::Tensor& keys_RGD, const at::Tensor& values_RGD) const;
  /// Returns copies of tokens, each in a page.
  AtenKeys copy(const at::Tensor& pages_K, const at::Tensor& places_K) const;
  /// Returns copies, or views of single pages.
  AtenCached gather(const at::Tensor& slots_S, std::int64_t keys) const;

private:
  std::int64_t page_tokens_;
  at::Tensor table_;     ///< [slots, pages_per_slot]
  at::Tensor keys_PGDT_; ///< of all pages
  at::Tensor values_PGTD_;
};

} // namespace troupe::models
