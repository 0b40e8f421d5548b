// Rows of logits and what losses want of them: the log-probability of one token
// and the entropy. Where tensor peers hold a run of the vocabulary each, a row
// is known by four numbers a peer, from which the whole is joined.
//
// R rows, V vocabulary (of this peer), P peers.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::models {

struct LogitRows {
  std::int64_t rows = 0;  ///< R
  std::int64_t vocab = 0; ///< V
  float inverse_temperature = 1;
  float inverse_cap = 0; ///< logits are capped; 0: they are not
  /// [R] counted from this peer's first row; outside of [0, V) another has it.
  std::span<const std::int64_t> targets_R;
};

/// A row as one peer's part of the vocabulary shows it.
struct RowPart {
  float top;      ///< largest logit
  float sum;      ///< of e^x, x = scaled logit below the largest
  float weighted; ///< of e^x x
  float target;   ///< its logit, or -inf where another peer has it
};
inline constexpr std::int64_t row_part_floats = sizeof(RowPart) / sizeof(float);

/// What a loss reads of a row.
struct RowStatistics {
  float* logprobs_R = nullptr;
  float* entropy_R = nullptr; ///< nats
  float* lse_R = nullptr;     ///< log-sum-exp of the scaled logits
};

/// Gradients of what a loss read; a null one is zero.
struct RowGradients {
  const float* d_logprobs_R = nullptr;
  const float* d_entropy_R = nullptr;
  const float* entropy_R = nullptr;
  const float* lse_R = nullptr;
};

/// parts [R] of this peer's logits [R, V].
void logit_parts(const LogitRows& shape, const float* logits_RV,
                 RowPart* parts_R);
/// Statistics from everybody's parts [P, R], added up in peer order.
void join_parts(const LogitRows& shape, std::uint32_t peers,
                const RowPart* parts_PR, const RowStatistics& found);
/// logits -> their gradient, in place.
void logit_gradient(const LogitRows& shape, const RowGradients& gradients,
                    float* logits_RV);

/// out[t] = hidden[t] . weight for all rows [rows, width].
void scalar_rows(const float* weight_H, std::int64_t width,
                 const float* hidden_TH, std::int64_t rows, float* out_T);
/// Adds to d_hidden and d_weight given d out.
void scalar_rows_backward(const float* weight_H, std::int64_t width,
                          const float* hidden_TH, std::int64_t rows,
                          const float* d_out_T, float* d_hidden_TH,
                          float* d_weight_H);

} // namespace troupe::models
