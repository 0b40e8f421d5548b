// The innermost loops of gemm.hpp, one set per instruction set and precision. A
// kernel multiplies `rows` rows of A by one packed panel of B; a panel is
// [lanes][panel_cols], zero-padded after column N. A lane is 32 bits: one
// float, or two bf16 numbers. Tile kernels have a lane order of their own.
#pragma once

#include "config/base/dtype.hpp"

#include <cstdint>

namespace troupe::models::gemm_detail {

struct Tile {
  std::int64_t k = 0; ///< in lanes
  const float* a = nullptr;
  std::int64_t a_row_stride = 0;
  std::int64_t a_col_stride = 0;
  const float* panel = nullptr;
  float* c = nullptr;
  std::int64_t c_stride = 0;
  bool accumulate = false; ///< add to C instead of overwriting
  /// Data to prefetch meanwhile, `ahead_step` floats per lane of k.
  const float* ahead = nullptr;
  std::int64_t ahead_step = 0; ///< up to 32
};

struct Kernels {
  const char* name;
  std::int64_t tile_rows;  ///< most rows per call
  std::int64_t panel_cols; ///< columns of a panel, and of every call
  std::int64_t step_depth; ///< k is zero-padded to whole steps
  std::int64_t step_lanes; ///< lanes of a row or column in a step
  /// Computes C[rows, panel_cols] (+)= A[rows, k] panel, 1 <= rows <=
  /// tile_rows.
  void (*multiply)(const Tile& tile, std::int64_t rows);
  /// Packs panel[k][panel_cols] from B^T: column j of the panel is the
  /// contiguous row b + j * stride; `cols` of them exist.
  void (*pack_transposed)(const float* b, std::int64_t stride, std::int64_t k,
                          std::int64_t cols, float* panel);
  /// Packs to[k][width] = from[k * stride ...], `count` floats each; width is
  /// panel_cols (zeros after count) or tile_rows (anything after count).
  void (*pack_rows)(const float* from, std::int64_t stride, std::int64_t k,
                    std::int64_t count, float* to, std::int64_t width);
  /// Packs to[rows][lanes of k] from rows of A that are contiguous in k,
  /// `stride` apart; null: they are read in place.
  void (*pack_along)(const float* from, std::int64_t stride, std::int64_t k,
                     std::int64_t rows, float* to);
  /// Packs the same from a transposed A: k rows, `stride` apart; null:
  /// pack_rows does this too.
  void (*pack_across)(const float* from, std::int64_t stride, std::int64_t k,
                      std::int64_t rows, float* to)
    = nullptr;
  /// Run by each thread before its first and after its last product.
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;
  std::int64_t max_depth = 704;        ///< of k per block
  std::int64_t block_floats = 1 << 16; ///< packed B that the caches keep

  std::int64_t lanes(std::int64_t depth) const {
    return (depth + step_depth - 1) / step_depth * step_lanes;
  }
};

const Kernels& avx512_kernels();
const Kernels& avx2_kernels();
const Kernels& plain_kernels();
/// Returns the best of those for this machine.
const Kernels& fp32_kernels();

/// Returns kernels for bf16 operands: with vdpbf16ps, or `fp32_kernels` with
/// operands rounded while they are packed.
const Kernels& avx512_bf16_kernels();
const Kernels& rounding_kernels();

/// Returns true if this process may use the processor's tile unit (AMX).
bool has_tiles() noexcept;
/// Returns tile kernels: for bf16 operands, and for fp32 operands in three bf16
/// parts each.
const Kernels& amx_bf16_kernels();
const Kernels& amx_parts_kernels();

/// Returns the fastest kernels here for the given operands, fp32 ones unsplit.
const Kernels& best_kernels(DType operands);

} // namespace troupe::models::gemm_detail
