// Element types of tensors in a GPU's memory. Kernels compute in fp32 and are
// templates of the type that is stored: float, or bf16, which is rounded to
// nearest even by integer operations, with the same bits on both sides.
#pragma once

#include "config/base/float16.hpp"

#include <cstdint>

namespace troupe::models::gpu {

/// A bf16 number in memory.
struct Bf16 {
  std::uint16_t bits;
};

constexpr float to_float(float x) {
  return x;
}
constexpr float to_float(Bf16 x) {
  return bf16_to_f32(x.bits);
}

constexpr void store(float* to, float value) {
  *to = value;
}
constexpr void store(Bf16* to, float value) {
  *to = {f32_to_bf16(value)};
}

} // namespace troupe::models::gpu
