#include "models/kernels/logits.hpp"

#include "models/kernels/host_math.hpp"
#include "models/kernels/host_simd.hpp"
#include "models/kernels/threads.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::models {

namespace {

constexpr std::int64_t logits_grain_floats = 1 << 13; // worth a thread

std::int64_t logits_grain_rows(std::int64_t width) {
  return std::max<std::int64_t>(1, logits_grain_floats / width);
}

// `target` counts from this rank's first vocabulary row and may be outside.
RowPart logits_row(const float* logits, std::int64_t vocab, std::int64_t target,
                   float inverse_temperature) {
  float top = logits[0];
#pragma omp simd reduction(max : top)
  for (std::int64_t j = 0; j < vocab; ++j)
    top = logits[j] > top ? logits[j] : top;
  float sum = 0;
  float weighted = 0; // sum of e^x x, x = scaled logit minus the largest
#pragma omp simd reduction(+ : sum, weighted)
  for (std::int64_t j = 0; j < vocab; ++j) {
    const float x = (logits[j] - top) * inverse_temperature;
    const float e = fast_exp(x);
    sum += e;
    weighted += e * x;
  }
  const bool here = target >= 0 && target < vocab;
  return {top, sum, weighted,
          here ? logits[target] : -std::numeric_limits<float>::infinity()};
}

struct JoinedRow {
  float logprob;
  float entropy;
  float lse;
};

// Joins a row from its parts, `stride` apart, added up in rank order.
JoinedRow logits_join(const RowPart* parts, std::uint32_t peers,
                      std::int64_t stride, float inverse_temperature) {
  float top = parts[0].top;
  float target = parts[0].target;
  for (std::uint32_t p = 1; p < peers; ++p) {
    top = std::max(top, parts[p * stride].top);
    target = std::max(target, parts[p * stride].target);
  }
  float sum = 0;
  float weighted = 0;
  for (std::uint32_t p = 0; p < peers; ++p) {
    const RowPart& part = parts[p * stride];
    const float below = (part.top - top) * inverse_temperature;
    const float scale = std::exp(below);
    sum += scale * part.sum;
    weighted += scale * (part.weighted + below * part.sum);
  }
  const float log_sum = std::log(sum);
  const float lse = top * inverse_temperature + log_sum;
  return {(target - top) * inverse_temperature - log_sum,
          log_sum - weighted / sum, lse};
}

// Returns the slope of cap tanh(x / cap), computed from its value.
[[gnu::always_inline]] inline float logits_cap_slope(float capped,
                                                     float inverse_cap) {
  const float t = capped * inverse_cap;
  return 1.0F - t * t;
}

struct RowGradient {
  float d_logprob;
  float d_entropy;
  float entropy;
  float lse;
  float inverse_cap;
};

// Replaces logits by their gradient, in place.
void logits_row_backward(float* logits, std::int64_t vocab, std::int64_t target,
                         float inverse_temperature, const RowGradient& row) {
  const bool here = target >= 0 && target < vocab;
  const float inverse_cap = row.inverse_cap;
  const float target_slope
    = here ? logits_cap_slope(logits[target], inverse_cap) : 0.0F;
#pragma omp simd
  for (std::int64_t j = 0; j < vocab; ++j) {
    const float logp = logits[j] * inverse_temperature - row.lse;
    const float p = fast_exp(logp);
    logits[j] = -inverse_temperature * p
                * (row.d_logprob + row.d_entropy * (logp + row.entropy))
                * logits_cap_slope(logits[j], inverse_cap);
  }
  if (here)
    logits[target] += inverse_temperature * row.d_logprob * target_slope;
}

// Runs body(row) on all threads, compiled for this machine.
template <class Body>
void logits_each(const LogitRows& shape, const Body& body) {
  parallel_for(0, shape.rows, logits_grain_rows(shape.vocab),
               [&](std::int64_t begin, std::int64_t end) {
                 on_best_isa([&] {
                   for (std::int64_t r = begin; r < end; ++r)
                     body(r);
                 });
               });
}

float logits_or_zero(const float* values, std::int64_t i) {
  return values != nullptr ? values[i] : 0.0F;
}

} // namespace

void logit_parts(const LogitRows& shape, const float* logits_RV,
                 RowPart* parts_R) {
  logits_each(shape, [&](std::int64_t r) {
    parts_R[r] = logits_row(logits_RV + r * shape.vocab, shape.vocab,
                            shape.targets_R[static_cast<std::size_t>(r)],
                            shape.inverse_temperature);
  });
}

void join_parts(const LogitRows& shape, std::uint32_t peers,
                const RowPart* parts_PR, const RowStatistics& found) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const JoinedRow row
      = logits_join(parts_PR + r, peers, shape.rows, shape.inverse_temperature);
    found.logprobs_R[r] = row.logprob;
    found.entropy_R[r] = row.entropy;
    found.lse_R[r] = row.lse;
  }
}

void logit_gradient(const LogitRows& shape, const RowGradients& gradients,
                    float* logits_RV) {
  logits_each(shape, [&](std::int64_t r) {
    logits_row_backward(
      logits_RV + r * shape.vocab, shape.vocab,
      shape.targets_R[static_cast<std::size_t>(r)], shape.inverse_temperature,
      {logits_or_zero(gradients.d_logprobs_R, r),
       logits_or_zero(gradients.d_entropy_R, r), gradients.entropy_R[r],
       gradients.lse_R[r], shape.inverse_cap});
  });
}

void scalar_rows(const float* weight_H, std::int64_t width,
                 const float* hidden_TH, std::int64_t rows, float* out_T) {
  on_best_isa([&] {
    for (std::int64_t t = 0; t < rows; ++t) {
      const float* x = hidden_TH + t * width;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = 0; j < width; ++j)
        sum += x[j] * weight_H[j];
      out_T[t] = sum;
    }
  });
}

void scalar_rows_backward(const float* weight_H, std::int64_t width,
                          const float* hidden_TH, std::int64_t rows,
                          const float* d_out_T, float* d_hidden_TH,
                          float* d_weight_H) {
  on_best_isa([&] {
    for (std::int64_t t = 0; t < rows; ++t) {
      const float d = d_out_T[t];
      if (d == 0)
        continue;
      const float* x = hidden_TH + t * width;
      float* dx = d_hidden_TH + t * width;
#pragma omp simd
      for (std::int64_t j = 0; j < width; ++j) {
        dx[j] += d * weight_H[j];
        d_weight_H[j] += d * x[j];
      }
    }
  });
}

} // namespace troupe::models
