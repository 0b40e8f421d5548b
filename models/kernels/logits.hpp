// Numbers of logit rows that losses need: the log-probability of one token and
// the entropy. If tp ranks hold a part of the vocabulary each, four numbers per
// row and rank are enough to join the whole row.
//
// R rows, V vocabulary (of this rank), P ranks.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::models {

struct LogitRows {
  std::int64_t rows = 0;  ///< R
  std::int64_t vocab = 0; ///< V
  float inverse_temperature = 1;
  float inverse_cap = 0; ///< of the soft cap of the logits; 0: not capped
  /// [R] counted from this rank's first vocabulary row; outside of [0, V)
  /// another rank has it.
  std::span<const std::int64_t> targets_R;
};

/// A row as seen by one rank's part of the vocabulary.
struct RowPart {
  float top;      ///< largest logit
  float sum;      ///< of e^x, x = scaled logit minus the largest
  float weighted; ///< of e^x x
  float target;   ///< the target's logit, or -inf if another rank has it
};
inline constexpr std::int64_t row_part_floats = sizeof(RowPart) / sizeof(float);

/// The numbers that a loss reads per row.
struct RowStatistics {
  float* logprobs_R = nullptr;
  float* entropy_R = nullptr; ///< nats
  float* lse_R = nullptr;     ///< log-sum-exp of the scaled logits
};

/// Gradients of what a loss read; a null pointer means zero.
struct RowGradients {
  const float* d_logprobs_R = nullptr;
  const float* d_entropy_R = nullptr;
  const float* entropy_R = nullptr;
  const float* lse_R = nullptr;
};

/// Computes parts [R] of this rank's logits [R, V].
void logit_parts(const LogitRows& shape, const float* logits_RV,
                 RowPart* parts_R);
/// Computes statistics from all ranks' parts [P, R], added up in rank order.
void join_parts(const LogitRows& shape, std::uint32_t peers,
                const RowPart* parts_PR, const RowStatistics& found);
/// Replaces logits by their gradient, in place.
void logit_gradient(const LogitRows& shape, const RowGradients& gradients,
                    float* logits_RV);

/// Computes out[t] = hidden[t] . weight for all rows [rows, width].
void scalar_rows(const float* weight_H, std::int64_t width,
                 const float* hidden_TH, std::int64_t rows, float* out_T);
/// Adds to d_hidden and d_weight, given d out.
void scalar_rows_backward(const float* weight_H, std::int64_t width,
                          const float* hidden_TH, std::int64_t rows,
                          const float* d_out_T, float* d_hidden_TH,
                          float* d_weight_H);

} // namespace troupe::models
