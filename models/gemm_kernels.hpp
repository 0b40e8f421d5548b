// The innermost loops of gemm.hpp, one set an instruction set and precision. A
// kernel multiplies `rows` rows of A by one packed panel of B; a panel is
// [lanes][panel_cols], zero-padded behind column N. A lane is 32 bits: one
// float, or with bf16 two numbers. Kernels of tiles have an order of lanes of
// their own.
#pragma once

#include "config/dtype.hpp"

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
  /// What the caches may be asked for meanwhile, so many floats a lane of k.
  const float* ahead = nullptr;
  std::int64_t ahead_step = 0; ///< up to 32
};

struct Kernels {
  const char* name;
  std::int64_t tile_rows;  ///< most rows a call takes
  std::int64_t panel_cols; ///< columns of a panel, and of every call
  std::int64_t step_depth; ///< k is filled up with zeros to whole steps
  std::int64_t step_lanes; ///< of a row or column in a step
  /// C[rows, panel_cols] (+)= A[rows, k] panel, 1 <= rows <= tile_rows.
  void (*multiply)(const Tile& tile, std::int64_t rows);
  /// panel[k][panel_cols] from B^T: column j of the panel is the contiguous
  /// row b + j * stride; `cols` of them exist.
  void (*pack_transposed)(const float* b, std::int64_t stride, std::int64_t k,
                          std::int64_t cols, float* panel);
  /// to[k][width] = from[k * stride ..], `count` floats each; width is
  /// panel_cols (zeros behind count) or tile_rows (anything behind count).
  void (*pack_rows)(const float* from, std::int64_t stride, std::int64_t k,
                    std::int64_t count, float* to, std::int64_t width);
  /// to[rows][lanes of k] from rows of A that lie along k, `stride` apart;
  /// null: they are read where they are.
  void (*pack_along)(const float* from, std::int64_t stride, std::int64_t k,
                     std::int64_t rows, float* to);
  /// The same from rows of A that lie across: k of them, `stride` apart; null:
  /// pack_rows is for them too.
  void (*pack_across)(const float* from, std::int64_t stride, std::int64_t k,
                      std::int64_t rows, float* to)
    = nullptr;
  /// What a thread does before its first product and behind its last one.
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;
  std::int64_t max_depth = 704;        ///< of k a block
  std::int64_t block_floats = 1 << 16; ///< packed B that the caches keep

  std::int64_t lanes(std::int64_t depth) const {
    return (depth + step_depth - 1) / step_depth * step_lanes;
  }
};

const Kernels& avx512_kernels();
const Kernels& avx2_kernels();
const Kernels& plain_kernels();
/// The best of those for this machine.
const Kernels& fp32_kernels();

/// Of bf16 operands: with vdpbf16ps, and elsewhere `fp32_kernels` with operands
/// rounded while they are packed.
const Kernels& avx512_bf16_kernels();
const Kernels& rounding_kernels();

/// Whether this process may use the processor's tile unit (AMX).
bool has_tiles() noexcept;
/// On tiles: of bf16 operands, and of fp32 ones in three bf16 parts each.
const Kernels& amx_bf16_kernels();
const Kernels& amx_parts_kernels();

/// Those of the given operands that are fastest here, fp32 ones as a whole.
const Kernels& best_kernels(DType operands);

} // namespace troupe::models::gemm_detail
