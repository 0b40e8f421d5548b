// The equipment of a libtorch device beside ATen's operations: its memory,
// kernels that ATen lacks, and the type in which it stores operands of bf16.
#pragma once

#include "config/base/dtype.hpp"
#include "models/gpu/flash_attention.hpp"
#include "models/kernels/graph_capture.hpp"
#include "net/base/block_memory.hpp"

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

namespace troupe::models {

/// Returns whether ATen computes grouped products in one launch on GPUs of this
/// generation, Hopper and Blackwell; on others it has a loop that waits for the
/// device.
inline bool has_grouped_products(int generation) {
  return generation == 9 || generation == 10;
}

struct AtenOptions {
  using NewRecorder = std::unique_ptr<GraphRecorder> (*)(at::Device device);

  const net::BlockMemory* memory = nullptr; ///< null: system memory, on the CPU
  const FlashKernel* flash = nullptr; ///< outlives the backend; null: none
  NewRecorder new_recorder = nullptr; ///< null: nothing is captured
  DType bf16_storage = DType::f32;    ///< in which bf16 operands are stored
  std::int64_t page_tokens = 256;     ///< of the KV cache
  std::int64_t copied_key_bytes
    = 256LL << 20; ///< of cached keys and values, for fused attention, at once
  bool own_kernels = false;      ///< those of models/gpu/kernels, not ATen's
  bool grouped_products = false; ///< ATen's, in one launch
};

} // namespace troupe::models
