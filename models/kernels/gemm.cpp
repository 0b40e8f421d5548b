// Blocking and threads around the kernels: panels of B are packed for one block
// of k and a few panels at a time (they stay in the second-level cache); rows
// of A are read in place unless A is transposed.
#include "models/kernels/gemm.hpp"

#include "config/base/arithmetic.hpp"
#include "config/base/error.hpp"
#include "models/kernels/gemm_grid.hpp"
#include "models/kernels/gemm_kernels.hpp"
#include "models/kernels/prefetch.hpp"
#include "models/kernels/threads.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

using gemm_detail::best_kernels;
using gemm_detail::Kernels;
using gemm_detail::Tile;

// A transposed tile of A is packed if it meets more panels than these.
constexpr std::int64_t gemm_unpacked_panels = 4;
constexpr double gemm_parallel_flops = 1.5e6; // below, threads cost more
constexpr std::int64_t gemm_parts_cols = 32;
constexpr std::int64_t gemm_parts_depth = 64;

// Depends on N and K alone, like the order of a sum. Splitting into parts pays
// only if there are enough panels and steps of k.
const Kernels& gemm_kernels(const GemmShape& shape,
                            const GemmOptions& options) {
  const bool parts = options.operands == DType::f32 && options.parts
                     && shape.n >= gemm_parts_cols
                     && shape.k >= gemm_parts_depth;
  return parts && gemm_detail::has_tiles() ? gemm_detail::amx_parts_kernels()
                                           : best_kernels(options.operands);
}

struct GemmRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Returns the i-th of `parts` nearly equal parts of [0, count).
GemmRange gemm_part(std::int64_t count, std::int64_t parts, std::int64_t i) {
  return {count * i / parts, count * (i + 1) / parts};
}

struct GemmJob {
  GemmShape shape;
  ConstMatrix a;
  ConstMatrix b;
  MutableMatrix c;
  GemmOptions options;
  const Kernels& kernels;
  const float* packed = nullptr; // all panels of B, or null
  std::int64_t depth = 0;        // of a block of k
};

// Returns the depth of equal blocks of k. It depends on K alone, so the order
// of a sum does too.
std::int64_t gemm_depth(const Kernels& kernels, std::int64_t k) {
  const std::int64_t grain = std::max<std::int64_t>(16, kernels.step_depth);
  const std::int64_t blocks
    = std::max<std::int64_t>(1, ceil_div(k, kernels.max_depth));
  return ceil_div(ceil_div(k, blocks), grain) * grain;
}

void gemm_pack_panel(const Kernels& kernels, const ConstMatrix& b,
                     std::int64_t k0, std::int64_t depth, std::int64_t col,
                     std::int64_t cols, float* panel) {
  const std::int64_t width = kernels.panel_cols;
  const float* from = b.data + k0 * b.row_stride + col * b.col_stride;
  if (b.col_stride != 1) {
    kernels.pack_transposed(from, b.col_stride, depth, cols, panel);
    return;
  }
  kernels.pack_rows(from, b.row_stride, depth, cols, panel, width);
}

void gemm_fill_bias(const GemmJob& job, std::int64_t row, std::int64_t rows,
                    std::int64_t col, std::int64_t cols) {
  for (std::int64_t i = row; i < row + rows; ++i) {
    float* c = job.c.data + i * job.c.stride + col;
    const float* bias = job.options.bias + col;
    for (std::int64_t j = 0; j < cols; ++j)
      c[j] = job.options.accumulate ? c[j] + bias[j] : bias[j];
  }
}

// Multiplies one tile whose panel has only `cols` real columns.
void gemm_edge_tile(const Kernels& kernels, Tile tile, std::int64_t rows,
                    std::int64_t cols) {
  alignas(64) float buffer[32 * 32];
  float* c = tile.c;
  const std::int64_t stride = tile.c_stride;
  const bool add = tile.accumulate;
  tile.c = buffer;
  tile.c_stride = kernels.panel_cols;
  tile.accumulate = false;
  kernels.multiply(tile, rows);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      const float x = buffer[i * kernels.panel_cols + j];
      c[i * stride + j] = add ? c[i * stride + j] + x : x;
    }
}

struct GemmBlock {
  GemmRange panels;
  std::int64_t k0 = 0;
  std::int64_t depth = 0;
  const float* packed = nullptr; // first panel of the block, at k0
  std::int64_t panel_stride = 0; // floats between panels

  const float* panel(std::int64_t p) const {
    return packed + (p - panels.begin) * panel_stride;
  }
};

// Returns a tile as the kernel reads it: in the kernel's own order, if it has
// one; else rows of a transposed A (row_stride 1) as [lanes][rows], one stream,
// if that pays; other rows in place if possible.
ConstMatrix gemm_pack_rows(const Kernels& kernels, const ConstMatrix& a,
                           std::int64_t rows, const GemmBlock& block,
                           float* to) {
  const bool across = a.col_stride != 1;
  if (across && kernels.pack_across != nullptr) {
    kernels.pack_across(a.data, a.col_stride, block.depth, rows, to);
    return {to};
  }
  const bool pays
    = block.panels.end - block.panels.begin > gemm_unpacked_panels;
  if (across && (pays || kernels.pack_along != nullptr)) {
    kernels.pack_rows(a.data, a.col_stride, block.depth, rows, to,
                      kernels.tile_rows);
    return {to, 1, kernels.tile_rows};
  }
  if (across || kernels.pack_along == nullptr)
    return a;
  kernels.pack_along(a.data, a.row_stride, block.depth, rows, to);
  return {to, kernels.lanes(block.depth), 1};
}

struct GemmPrefetch {
  const float* from = nullptr;
  std::int64_t step = 0; // floats per lane of k
};

// Multiplies `count` rows from `row` on, as `a` holds them, by panel `p` of the
// block.
void gemm_multiply_tile(const GemmJob& job, const GemmBlock& block,
                        std::int64_t row, std::int64_t count, std::int64_t p,
                        const ConstMatrix& a, const GemmPrefetch& ahead = {}) {
  const Kernels& kernels = job.kernels;
  const std::int64_t width = kernels.panel_cols;
  const std::int64_t cols = std::min(width, job.shape.n - p * width);
  if (job.options.bias != nullptr && block.k0 == 0)
    gemm_fill_bias(job, row, count, p * width, cols);
  const bool add_always = job.options.accumulate || job.options.bias != nullptr;
  const Tile tile{kernels.lanes(block.depth),
                  a.data,
                  a.row_stride,
                  a.col_stride,
                  block.panel(p),
                  job.c.data + row * job.c.stride + p * width,
                  job.c.stride,
                  add_always || block.k0 > 0,
                  ahead.from,
                  ahead.step};
  if (cols == width)
    kernels.multiply(tile, count);
  else
    gemm_edge_tile(kernels, tile, count, cols);
}

// Returns A's rows from `row` on, at the block's k.
ConstMatrix gemm_rows(const GemmJob& job, const GemmBlock& block,
                      std::int64_t row) {
  return {job.a.data + row * job.a.row_stride + block.k0 * job.a.col_stride,
          job.a.row_stride, job.a.col_stride};
}

// Multiplies all rows of `rows` by one block of panels and k; `next` prefetches
// what the following block is packed from.
void gemm_multiply_block(const GemmJob& job, const GemmRange& rows,
                         const GemmBlock& block, float* a_scratch,
                         Prefetch next) {
  const Kernels& kernels = job.kernels;
  for (std::int64_t i = rows.begin; i < rows.end; i += kernels.tile_rows) {
    const std::int64_t count = std::min(kernels.tile_rows, rows.end - i);
    const ConstMatrix a = gemm_pack_rows(kernels, gemm_rows(job, block, i),
                                         count, block, a_scratch);
    for (std::int64_t p = block.panels.begin; p < block.panels.end; ++p) {
      next.ask();
      gemm_multiply_tile(job, block, i, count, p, a);
    }
  }
}

// Does the same for a B that comes from memory and an A that is read in place:
// panel by panel. While a panel's tiles are computed, each prefetches a share
// of the next panel: a single tile all of it, others half.
void gemm_stream_block(const GemmJob& job, const GemmRange& rows,
                       const GemmBlock& block) {
  const Kernels& kernels = job.kernels;
  const std::int64_t floats = kernels.lanes(block.depth) * kernels.panel_cols;
  const std::int64_t all = rows.end - rows.begin;
  const std::int64_t step
    = all > kernels.tile_rows ? kernels.panel_cols / 2 : kernels.panel_cols;
  for (std::int64_t p = block.panels.begin; p < block.panels.end; ++p)
    for (std::int64_t i = rows.begin; i < rows.end; i += kernels.tile_rows) {
      GemmPrefetch ahead;
      if (p + 1 < block.panels.end)
        ahead = {block.panel(p + 1) + floats * (i - rows.begin) / all, step};
      gemm_multiply_tile(job, block, i,
                         std::min(kernels.tile_rows, rows.end - i), p,
                         gemm_rows(job, block, i), ahead);
    }
}

// Returns the panels of one block of k: inside the packed matrix, or packed
// now.
GemmBlock gemm_block(const GemmJob& job, const GemmRange& panels,
                     std::int64_t k0, AlignedFloats& scratch) {
  const Kernels& kernels = job.kernels;
  const std::int64_t width = kernels.panel_cols;
  GemmBlock block{panels, k0, std::min(job.depth, job.shape.k - k0), nullptr,
                  0};
  if (job.packed != nullptr) {
    block.panel_stride = kernels.lanes(job.shape.k) * width;
    block.packed = job.packed + panels.begin * block.panel_stride
                   + kernels.lanes(k0) * width;
    return block;
  }
  block.panel_stride = kernels.lanes(block.depth) * width;
  float* to = scratch.reserve((panels.end - panels.begin) * block.panel_stride);
  block.packed = to;
  for (std::int64_t p = panels.begin; p < panels.end; ++p) {
    gemm_pack_panel(kernels, job.b, k0, block.depth, p * width,
                    std::min(width, job.shape.n - p * width), to);
    to += block.panel_stride;
  }
  return block;
}

// Returns the prefetch of B at `panels` from `k0` on, in as many shares as
// `rows` has tiles.
Prefetch gemm_prefetch(const GemmJob& job, const GemmRange& rows,
                       const GemmRange& panels, std::int64_t k0) {
  if (job.packed != nullptr || panels.begin >= panels.end)
    return {};
  const std::int64_t width = job.kernels.panel_cols;
  const std::int64_t col = panels.begin * width;
  const std::int64_t cols = std::min(panels.end * width, job.shape.n) - col;
  const std::int64_t depth = std::min(job.depth, job.shape.k - k0);
  const float* from
    = job.b.data + k0 * job.b.row_stride + col * job.b.col_stride;
  const std::int64_t shares
    = ceil_div(rows.end - rows.begin, job.kernels.tile_rows)
      * (panels.end - panels.begin);
  return job.b.col_stride == 1
           ? Prefetch{from, {depth, cols, job.b.row_stride}, shares}
           : Prefetch{from, {cols, depth, job.b.col_stride}, shares};
}

void gemm_run_range(const GemmJob& job, const GemmRange& rows,
                    const GemmRange& panels) {
  if (rows.begin >= rows.end || panels.begin >= panels.end)
    return;
  static thread_local AlignedFloats b_scratch;
  static thread_local AlignedFloats a_scratch;
  const Kernels& kernels = job.kernels;
  float* a_tile = a_scratch.reserve(
    std::max(job.depth, kernels.lanes(job.depth)) * kernels.tile_rows);
  const std::int64_t a_crossed
    = job.a.col_stride != 1 && kernels.pack_across == nullptr ? 4 : 1;
  const bool streams = job.packed != nullptr && job.a.col_stride == 1
                       && kernels.pack_along == nullptr;
  const std::int64_t step
    = streams ? panels.end - panels.begin
              : std::max<std::int64_t>(
                1, a_crossed * kernels.block_floats
                     / (kernels.lanes(job.depth) * kernels.panel_cols));
  if (kernels.enter != nullptr)
    kernels.enter();
  for (std::int64_t p = panels.begin; p < panels.end; p += step) {
    const GemmRange part{p, std::min(p + step, panels.end)};
    const GemmRange behind{part.end, std::min(part.end + step, panels.end)};
    for (std::int64_t k0 = 0; k0 < job.shape.k; k0 += job.depth) {
      const GemmBlock block = gemm_block(job, part, k0, b_scratch);
      const std::int64_t k1 = k0 + job.depth;
      if (streams)
        gemm_stream_block(job, rows, block);
      else
        gemm_multiply_block(job, rows, block, a_tile,
                            k1 < job.shape.k
                              ? gemm_prefetch(job, rows, part, k1)
                              : gemm_prefetch(job, rows, behind, 0));
    }
  }
  if (kernels.leave != nullptr)
    kernels.leave();
}

void gemm_empty_sum(const GemmJob& job) {
  if (job.options.bias != nullptr)
    return gemm_fill_bias(job, 0, job.shape.m, 0, job.shape.n);
  for (std::int64_t i = 0; i < job.shape.m && !job.options.accumulate; ++i)
    std::fill_n(job.c.data + i * job.c.stride, job.shape.n, 0.0F);
}

void gemm_run(GemmJob job, std::int64_t threads) {
  if (job.shape.m <= 0 || job.shape.n <= 0)
    return;
  if (job.shape.k <= 0)
    return gemm_empty_sum(job);
  TROUPE_CHECK(job.a.row_stride == 1 || job.a.col_stride == 1,
               "A must have a stride of 1");
  TROUPE_CHECK(job.packed != nullptr || job.b.row_stride == 1
                 || job.b.col_stride == 1,
               "B must have a stride of 1");
  const Kernels& kernels = job.kernels;
  job.depth = gemm_depth(kernels, job.shape.k);
  const std::int64_t tiles = ceil_div(job.shape.m, kernels.tile_rows);
  const std::int64_t panels = ceil_div(job.shape.n, kernels.panel_cols);
  // A few rows take as long as a full tile: reading packed B dominates.
  const std::int64_t cost_rows = job.packed != nullptr
                                   ? std::max(job.shape.m, kernels.tile_rows)
                                   : job.shape.m;
  const double flops = 2.0 * static_cast<double>(cost_rows)
                       * static_cast<double>(job.shape.n)
                       * static_cast<double>(job.shape.k);
  if (threads <= 1 || flops < gemm_parallel_flops)
    return gemm_run_range(job, {0, job.shape.m}, {0, panels});
  const GemmGrid grid = gemm_grid(tiles, panels, kernels, threads);
  const std::int64_t parts = grid.row_parts * grid.panel_parts;
  parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      GemmRange rows = gemm_part(tiles, grid.row_parts, i / grid.panel_parts);
      rows.begin *= kernels.tile_rows;
      rows.end = std::min(rows.end * kernels.tile_rows, job.shape.m);
      gemm_run_range(job, rows,
                     gemm_part(panels, grid.panel_parts, i % grid.panel_parts));
    }
  });
}

} // namespace

void gemm(const GemmShape& shape, const ConstMatrix& a, const ConstMatrix& b,
          const MutableMatrix& c, const GemmOptions& options) {
  gemm_run({shape, a, b, c, options, gemm_kernels(shape, options)},
           compute_threads());
}

void gemm_serial(const GemmShape& shape, const ConstMatrix& a,
                 const ConstMatrix& b, const MutableMatrix& c,
                 const GemmOptions& options) {
  gemm_run({shape, a, b, c, options, gemm_kernels(shape, options)}, 1);
}

PackedMatrix::PackedMatrix(const ConstMatrix& b, std::int64_t k, std::int64_t n,
                           DType operands)
  : k_(k),
    n_(n),
    operands_(operands) {
  const Kernels& kernels = best_kernels(operands);
  const std::int64_t lanes = kernels.lanes(k);
  const std::int64_t width = kernels.panel_cols;
  const std::int64_t panels = ceil_div(n, width);
  floats_.reserve(panels * lanes * width);
  parallel_for(0, panels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p)
      gemm_pack_panel(kernels, b, 0, k, p * width,
                      std::min(width, n - p * width),
                      floats_.data() + p * lanes * width);
  });
}

void gemm(std::int64_t m, const ConstMatrix& a, const PackedMatrix& b,
          const MutableMatrix& c, const GemmOptions& options) {
  gemm_run({{m, b.n(), b.k()},
            a,
            {},
            c,
            options,
            best_kernels(b.operands()),
            b.data()},
           compute_threads());
}

const char* gemm_kernel_name(DType operands) {
  return best_kernels(operands).name;
}

} // namespace troupe::models
