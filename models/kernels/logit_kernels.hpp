// Logits of a vocabulary, of which tp ranks may have a slice each: statistics
// and gradients of losses, and draws of tokens. Also the scalars of value
// heads. A part of backend.hpp.
#pragma once

#include "config/base/defaults.hpp"
#include "config/base/error.hpp"
#include "models/kernels/kept_logits.hpp"
#include "models/kernels/logits.hpp"
#include "models/kernels/picked_logits.hpp"
#include "models/kernels/token_draw.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <cstdint>

namespace troupe::models {

class LogitKernels {
public:
  virtual ~LogitKernels() = default;

  /// Returns how many logits a loss computes at a time.
  virtual std::int64_t logits_at_once() const {
    return defaults::logits_at_once;
  }
  virtual void cap_logits(float* x, std::int64_t count, float cap) = 0;
  virtual void keep_logits(const KeptIds& kept, float* logits_RV) = 0;
  virtual void logit_parts(const LogitRows& shape, const float* logits_RV,
                           RowPart* parts_R)
    = 0;
  virtual void join_parts(const LogitRows& shape, std::uint32_t peers,
                          const RowPart* parts_PR, const RowStatistics& found)
    = 0;
  virtual void logit_gradient(const LogitRows& shape,
                              const RowGradients& gradients, float* logits_RV)
    = 0;

  virtual void picked_logits(const PickedIds& picked, const float* logits_RV,
                             float* to_RK)
    = 0;
  virtual void join_picked(const PickedIds& picked, std::uint32_t peers,
                           const float* logits_PRK, const float* lse_R,
                           const PickedStatistics& found)
    = 0;
  virtual void picked_gradient(const PickedIds& picked, const float* logits_RK,
                               const float* d_logprobs_RK, float* d_logits_RV)
    = 0;
  virtual void largest_logits(const LargestLogits& shape,
                              const float* logits_RV, float* values_RK,
                              std::int32_t* ids_RK)
    = 0;

  /// Returns whether the device draws tokens, or leaves that to the host.
  virtual bool draws() const {
    return false;
  }
  /// Draws a token per row; keys and tokens are in device memory.
  virtual void draw(const DrawRows& /*what*/, const float* /*logits_RV*/,
                    const DrawKey* /*keys_R*/, DrawnToken* /*drawn_R*/) {
    TROUPE_CHECK(draws(), "the host draws");
  }

  virtual void scalar_rows(const float* weight_H, std::int64_t width,
                           ConstTypedPtr hidden_TH, std::int64_t rows,
                           float* out_T)
    = 0;
  virtual void scalar_rows_backward(const float* weight_H, std::int64_t width,
                                    ConstTypedPtr hidden_TH, std::int64_t rows,
                                    const float* d_out_T, TypedPtr d_hidden_TH,
                                    float* d_weight_H)
    = 0;
};

} // namespace troupe::models
