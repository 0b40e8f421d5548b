#include "models/kernels/mlp.hpp"

#include "models/kernels/host_math.hpp"
#include "models/kernels/host_simd.hpp"
#include "models/kernels/threads.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

constexpr std::int64_t mlp_grain_floats = 1 << 13; // worth a thread

std::int64_t mlp_grain_rows(std::int64_t width) {
  return std::max<std::int64_t>(1, mlp_grain_floats / width);
}

/// An activation and its derivative.
struct UnitValue {
  float value;
  float slope;
};

struct Silu {
  [[gnu::always_inline]] static float value(float x) {
    return x / (1.0F + fast_exp(-x));
  }
  [[gnu::always_inline]] static UnitValue both(float x) {
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
  [[gnu::always_inline]] static UnitValue share_and_bell(float x) {
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
  [[gnu::always_inline]] static float value(float x) {
    return x * share_and_bell(x).value;
  }
  [[gnu::always_inline]] static UnitValue both(float x) {
    const auto [share, bell] = share_and_bell(x);
    return {x * share, share + x * density_at_0 * bell};
  }
};

/// Uses (1 + tanh(u)) / 2, the logistic function of 2u.
struct GeluTanh {
  static constexpr float twice_root = 1.5957691216057308F; // 2 sqrt(2 / pi)
  static constexpr float cubic = 0.044715F;

  [[gnu::always_inline]] static float value(float x) {
    const float u = twice_root * (x + cubic * x * x * x);
    return x / (1.0F + fast_exp(-u));
  }
  [[gnu::always_inline]] static UnitValue both(float x) {
    const float u = twice_root * (x + cubic * x * x * x);
    const float share = 1.0F / (1.0F + fast_exp(-u));
    const float slope = twice_root * (1.0F + 3.0F * cubic * x * x);
    return {x * share, share + x * share * (1.0F - share) * slope};
  }
};

template <class Unit>
void mlp_forward_row(const float* in, float* out, std::int64_t width,
                     bool gated) {
  if (!gated) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      out[i] = Unit::value(in[i]);
    return;
  }
  const float* up = in + width;
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i)
    out[i] = Unit::value(in[i]) * up[i];
}

template <class Unit>
void mlp_backward_row(float* in, float* act, std::int64_t width, bool gated) {
  if (!gated) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const UnitValue unit = Unit::both(in[i]);
      in[i] = act[i] * unit.slope;
      act[i] = unit.value;
    }
    return;
  }
  float* up = in + width;
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) {
    const float u = up[i];
    const float d = act[i];
    const UnitValue unit = Unit::both(in[i]);
    in[i] = d * u * unit.slope;
    up[i] = d * unit.value;
    act[i] = unit.value * u;
  }
}

template <class Unit>
void mlp_forward_rows(const MlpShape& s, const float* in, float* act,
                      std::int64_t begin, std::int64_t end) {
  on_best_isa([&] {
    for (std::int64_t t = begin; t < end; ++t)
      mlp_forward_row<Unit>(in + t * s.columns(), act + t * s.width, s.width,
                            s.gated);
  });
}

template <class Unit>
void mlp_backward_rows(const MlpShape& s, float* in, float* act,
                       std::int64_t begin, std::int64_t end) {
  on_best_isa([&] {
    for (std::int64_t t = begin; t < end; ++t)
      mlp_backward_row<Unit>(in + t * s.columns(), act + t * s.width, s.width,
                             s.gated);
  });
}

void mlp_forward_range(const MlpShape& s, const float* in, float* act,
                       std::int64_t begin, std::int64_t end) {
  switch (s.activation) {
  case Activation::silu:
    return mlp_forward_rows<Silu>(s, in, act, begin, end);
  case Activation::gelu:
    return mlp_forward_rows<Gelu>(s, in, act, begin, end);
  case Activation::gelu_tanh:
    return mlp_forward_rows<GeluTanh>(s, in, act, begin, end);
  }
}

void mlp_backward_range(const MlpShape& s, float* in, float* d_act,
                        std::int64_t begin, std::int64_t end) {
  switch (s.activation) {
  case Activation::silu:
    return mlp_backward_rows<Silu>(s, in, d_act, begin, end);
  case Activation::gelu:
    return mlp_backward_rows<Gelu>(s, in, d_act, begin, end);
  case Activation::gelu_tanh:
    return mlp_backward_rows<GeluTanh>(s, in, d_act, begin, end);
  }
}

} // namespace

void mlp_unit(const MlpShape& shape, const float* in, float* act) {
  parallel_for(0, shape.rows, mlp_grain_rows(shape.width),
               [&](std::int64_t begin, std::int64_t end) {
                 mlp_forward_range(shape, in, act, begin, end);
               });
}

void mlp_unit_backward(const MlpShape& shape, float* in, float* d_act) {
  parallel_for(0, shape.rows, mlp_grain_rows(shape.width),
               [&](std::int64_t begin, std::int64_t end) {
                 mlp_backward_range(shape, in, d_act, begin, end);
               });
}

} // namespace troupe::models
