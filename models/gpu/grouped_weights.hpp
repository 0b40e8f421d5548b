// Weights of a group of products as ATen's grouped product takes them: one
// tensor, whose step from one weight to the next may be any.
#pragma once

#include "models/kernels/typed_ptr.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::models {

/// Numbers of weights that are rounded, or of gradients, at a time: 256 MiB.
inline constexpr std::int64_t aten_grouped_numbers = std::int64_t{1} << 27;
inline constexpr std::size_t aten_most_groups = 512; ///< ATen takes under 1024
inline constexpr std::int64_t aten_vector = 8; ///< bf16 numbers in 16 bytes

/// Returns the numbers from each weight of so many to the next one; 0: they are
/// not at equal distances, or one is null.
std::int64_t step_of_weights(std::span<const ConstTypedPtr> weights,
                             std::int64_t numbers);

/// Returns whether these are bf16 numbers at 16 bytes.
bool is_aligned_bf16(ConstTypedPtr data);

} // namespace troupe::models
