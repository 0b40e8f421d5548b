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
  if (s.activation == Activation::silu)
    mlp_forward_rows<Silu>(s, in, act, begin, end);
  else
    mlp_forward_rows<GeluTanh>(s, in, act, begin, end);
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
                 if (shape.activation == Activation::silu)
                   mlp_backward_rows<Silu>(shape, in, d_act, begin, end);
                 else
                   mlp_backward_rows<GeluTanh>(shape, in, d_act, begin, end);
               });
}

} // namespace troupe::models
