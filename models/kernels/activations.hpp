// The activations of MLPs, element by element, each with its derivative: one
// text for the host's loops (mlp.cpp) and for the GPU's kernel
// (models/gpu/kernels/gated_unit.hpp).
#pragma once

#include "models/kernels/host_math.hpp"

namespace troupe::models {

/// An activation and its derivative.
struct UnitValue {
  float value;
  float slope;
};

struct Silu {
  [[gnu::always_inline]] static constexpr float value(float x) {
    return x / (1.0F + fast_exp(-x));
  }
  [[gnu::always_inline]] static constexpr UnitValue both(float x) {
    const float sigmoid = 1.0F / (1.0F + fast_exp(-x));
    const float silu = x * sigmoid;
    return {silu, sigmoid * (1.0F + x - silu)};
  }
};

/// Uses the tail of the normal distribution for |x|, from Abramowitz and Stegun
/// 7.1.26 (erf within 1.5e-7).
struct Gelu {
  static constexpr float density_at_0 = 0.3989422804F; // 1 / sqrt(2 pi)

  /// Returns the share of x that passes, P(X < x), and e^(-x^2 / 2).
  [[gnu::always_inline]] static constexpr UnitValue share_and_bell(float x) {
    const float size = x < 0 ? -x : x;
    const float t = 1.0F / (1.0F + 0.3275911F * 0.7071067812F * size);
    const float bell = fast_exp(-0.5F * x * x);
    float p = 1.061405429F;
    p = p * t - 1.453152027F;
    p = p * t + 1.421413741F;
    p = p * t - 0.284496736F;
    p = p * t + 0.254829592F;
    const float tail = 0.5F * p * t * bell;
    return {x < 0 ? tail : 1.0F - tail, bell};
  }
  [[gnu::always_inline]] static constexpr float value(float x) {
    return x * share_and_bell(x).value;
  }
  [[gnu::always_inline]] static constexpr UnitValue both(float x) {
    const auto [share, bell] = share_and_bell(x);
    return {x * share, share + x * density_at_0 * bell};
  }
};

/// Uses (1 + tanh(u)) / 2, the logistic function of 2u.
struct GeluTanh {
  static constexpr float twice_root = 1.5957691216057308F; // 2 sqrt(2 / pi)
  static constexpr float cubic = 0.044715F;

  [[gnu::always_inline]] static constexpr float value(float x) {
    const float u = twice_root * (x + cubic * x * x * x);
    return x / (1.0F + fast_exp(-u));
  }
  [[gnu::always_inline]] static constexpr UnitValue both(float x) {
    const float u = twice_root * (x + cubic * x * x * x);
    const float share = 1.0F / (1.0F + fast_exp(-u));
    const float slope = twice_root * (1.0F + 3.0F * cubic * x * x);
    return {x * share, share + x * share * (1.0F - share) * slope};
  }
};

} // namespace troupe::models
