// The frequencies of rotary positions under each kind of scaling, in the
// arithmetic of transformers: their rounding decides the last digits of every
// score.
#pragma once

#include "config/model/rope_parameters.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

/// Returns the angle per position of each rotated pair of dimensions, up to the
/// original positions of longrope.
std::vector<float> rope_frequencies(const RopeParameters& rope,
                                    std::int64_t head_dim);
/// Returns the factor of queries and keys, by which cos and sin are multiplied:
/// that of the parameters, or 0.1 ln(factor) + 1 (yarn), or
/// sqrt(1 + ln(factor) / ln(original positions)) (longrope, whose factor is
/// `max_positions` by the original ones); 1 for other kinds.
float rope_attention_factor(const RopeParameters& rope,
                            std::int64_t max_positions);

} // namespace troupe::models
