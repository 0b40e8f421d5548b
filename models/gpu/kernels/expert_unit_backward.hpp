// The gradient of an expert's unit (gated_unit.hpp) and of what its output is
// weighted by, in one pass over rows that would take five kernels: the unit, a
// row's dot with it, two rows times the weight, the unit's gradient.
//
// R rows at experts, I intermediate of an expert, H hidden; one block per row.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/activations.hpp"

#include <cstdint>

namespace troupe::models::gpu {

template <class Unit, class T>
struct ExpertUnitBackward {
  static constexpr int threads = 256;
  struct Shared {
    float part[threads];
  };

  T* gate_up_RX = nullptr; ///< [R, 2I]; becomes its gradient
  T* d_act_RI = nullptr;   ///< of outputs without weights; becomes act
  T* dy_RH = nullptr;      ///< becomes weight * dy
  const float* weight_R = nullptr;
  float* d_weight_R = nullptr;
  std::int64_t width = 0;  ///< I
  std::int64_t hidden = 0; ///< H

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    T* row = gate_up_RX + block.index * 2 * width;
    T* act = d_act_RI + block.index * width;
    T* dy = dy_RH + block.index * hidden;
    const float weight = weight_R[block.index];
    block.each([&](int lane) {
      float dot = 0;
      for (std::int64_t i = lane; i < width; i += threads) {
        const UnitValue unit = Unit::both(to_float(row[i]));
        const float up = to_float(row[width + i]);
        const float d = to_float(act[i]);
        const float value = unit.value * up;
        dot += d * value;
        store(row + i, weight * d * up * unit.slope);
        store(row + width + i, weight * d * unit.value);
        store(act + i, value);
      }
      for (std::int64_t j = lane; j < hidden; j += threads)
        store(dy + j, weight * to_float(dy[j]));
      shared.part[lane] = dot;
    });
    sum(block, shared.part);
    block.each([&](int lane) {
      if (lane == 0)
        d_weight_R[block.index] = shared.part[0];
    });
  }
};

} // namespace troupe::models::gpu
