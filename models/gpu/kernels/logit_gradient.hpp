// Replaces logits by their gradient, in place, with the contract of
// models/kernels/logits.hpp: no second tensor of the vocabulary's width exists.
//
// R rows, V vocabulary (of this rank); one block per row.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/host_math.hpp"
#include "models/kernels/logits.hpp"

#include <cstdint>

namespace troupe::models::gpu {

template <class T>
struct LogitGradient {
  static constexpr int threads = 512;
  struct Shared {};

  T* logits_RV = nullptr;
  const std::int64_t* targets_R = nullptr; ///< as in LogitRows
  RowGradients gradients;
  std::int64_t vocab = 0; ///< V
  float inverse_temperature = 1;
  float inverse_cap = 0; ///< as in LogitRows

  static std::int64_t blocks(std::int64_t rows) {
    return rows;
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared&) const {
    const std::int64_t row = block.index;
    T* logits = logits_RV + row * vocab;
    block.each([&](int lane) {
      const float d_logprob = or_zero(gradients.d_logprobs_R, row);
      const float d_entropy = or_zero(gradients.d_entropy_R, row);
      const float entropy = gradients.entropy_R[row];
      const float lse = gradients.lse_R[row];
      for (std::int64_t j = lane; j < vocab; j += threads) {
        const float logit = to_float(logits[j]);
        const float capped = logit * inverse_cap;
        const float slope = 1.0F - capped * capped;
        const float logp = logit * inverse_temperature - lse;
        const float through_sum
          = -fast_exp(logp) * (d_logprob + d_entropy * (logp + entropy));
        const float picked = j == targets_R[row] ? d_logprob : 0.0F;
        store(logits + j, (through_sum + picked) * inverse_temperature * slope);
      }
    });
  }

  static TROUPE_KERNEL float or_zero(const float* values, std::int64_t row) {
    return values != nullptr ? values[row] : 0.0F;
  }
};

} // namespace troupe::models::gpu
