#include "models/kernels/mlp.hpp"

#include "models/kernels/activations.hpp"
#include "models/kernels/host_simd.hpp"
#include "models/kernels/threads.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

constexpr std::int64_t mlp_grain_floats = 1 << 13; // worth a thread

std::int64_t mlp_grain_rows(std::int64_t width) {
  return std::max<std::int64_t>(1, mlp_grain_floats / width);
}

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
