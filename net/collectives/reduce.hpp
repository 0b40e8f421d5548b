// Sums of equally long vectors in rank order: ((r0 + r1) + r2) + ... for every
// element, in the type itself, bf16 in fp32 and rounded once at the end. The
// order of additions never depends on which member computes them (I8).
#pragma once

#include "config/base/dtype.hpp"

#include <cstddef>
#include <span>

namespace troupe::net {

/// Returns true for types that can be summed: f32, f64, bf16, i32, i64.
bool can_sum(DType dtype) noexcept;

/// Computes out[i] = sources[0][i] + sources[1][i] + ... and writes it to every
/// target (each may be one of the sources). Throws InvariantError if
/// !can_sum(dtype).
void sum_in_rank_order(std::span<const std::byte* const> sources,
                       std::span<std::byte* const> targets, std::size_t count,
                       DType dtype);

/// Computes data[i] = before[i] + data[i]; any dtype except bf16.
void add_before(const std::byte* before, std::byte* data, std::size_t count,
                DType dtype);

/// Converts bf16 to fp32 and back (round to nearest even; NaN stays NaN).
void widen_bf16(const std::byte* from, float* to, std::size_t count);
void narrow_bf16(const float* from, std::byte* to, std::size_t count);

} // namespace troupe::net
