// The slow references beside the fast paths: loops in double that define what a
// kernel computes. Row-major, packed as in the headers of models/.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace troupe::testing {

using Doubles = std::vector<double>;

inline std::vector<float> random_floats(std::int64_t count,
                                        std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& x : out)
    x = normal(random);
  return out;
}

inline std::size_t at2(std::int64_t row, std::int64_t col, std::int64_t width) {
  return static_cast<std::size_t>(row * width + col);
}

/// y = x / sqrt(mean(x^2) + eps) * weight, rows of `width`.
inline Doubles reference_rms_norm(const Doubles& x, const Doubles& weight,
                                  std::int64_t width, double eps) {
  Doubles y(x.size());
  for (std::size_t row = 0; row < x.size();
       row += static_cast<std::size_t>(width)) {
    double square = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(width); ++j)
      square += x[row + j] * x[row + j];
    const double rstd
      = 1 / std::sqrt(square / static_cast<double>(width) + eps);
    for (std::size_t j = 0; j < static_cast<std::size_t>(width); ++j)
      y[row + j] = x[row + j] * rstd * weight[j];
  }
  return y;
}

struct ReferenceHeads {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

/// out[t] of one head: softmax over its sequence's tokens [first, t].
inline void reference_attention_row(const ReferenceHeads& h, std::int64_t head,
                                    std::int64_t first, std::int64_t t,
                                    const Doubles& qkv, Doubles& out) {
  const std::int64_t d = h.head_dim;
  const std::int64_t width = (h.heads + 2 * h.kv_heads) * d;
  const std::int64_t group = head / (h.heads / h.kv_heads);
  const std::int64_t k_col = (h.heads + group) * d;
  const std::int64_t v_col = (h.heads + h.kv_heads + group) * d;
  Doubles weights;
  double sum = 0;
  for (std::int64_t u = first; u <= t; ++u) {
    double score = 0;
    for (std::int64_t i = 0; i < d; ++i)
      score += qkv[at2(t, head * d + i, width)] * qkv[at2(u, k_col + i, width)];
    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(d))));
    sum += weights.back();
  }
  for (std::int64_t u = first; u <= t; ++u)
    for (std::int64_t i = 0; i < d; ++i)
      out[at2(t, head * d + i, h.heads * d)]
        += weights[static_cast<std::size_t>(u - first)] / sum
           * qkv[at2(u, v_col + i, width)];
}

/// Computes causal attention, one sequence after the other, one score at a
/// time.
inline Doubles reference_attention(const ReferenceHeads& h,
                                   const std::vector<std::int64_t>& cu_seqlens,
                                   const Doubles& qkv) {
  Doubles out(
    static_cast<std::size_t>(cu_seqlens.back() * h.heads * h.head_dim));
  for (std::size_t s = 0; s + 1 < cu_seqlens.size(); ++s)
    for (std::int64_t t = cu_seqlens[s]; t < cu_seqlens[s + 1]; ++t)
      for (std::int64_t head = 0; head < h.heads; ++head)
        reference_attention_row(h, head, cu_seqlens[s], t, qkv, out);
  return out;
}

/// d (sum of out * weight) / d x by central differences of `function`.
template <class Function>
Doubles numeric_gradient(const Function& function, Doubles x,
                         const Doubles& weight) {
  const auto total = [&] {
    const Doubles out = function(x);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i)
      sum += out[i] * weight[i];
    return sum;
  };
  constexpr double step = 1e-5;
  Doubles gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + step;
    const double above = total();
    x[i] = kept - step;
    gradient[i] = (above - total()) / (2 * step);
    x[i] = kept;
  }
  return gradient;
}

inline Doubles doubles(const std::vector<float>& x) {
  return {x.begin(), x.end()};
}

} // namespace troupe::testing
