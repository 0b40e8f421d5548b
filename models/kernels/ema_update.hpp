// The exponential moving average (EMA; Polyak and Juditsky 1992) of a trained
// role's weights, element by element: a model may be updated in any parts.
// With own the fp32 nearest to `decay` and rest the fp32 nearest to 1 - own,
// the products of
//
//     own * target + rest * incoming
//
// are exact in double precision, and their sum is rounded there and to fp32:
// every compiler and processor gives the same bits. Zero padding stays zero.
#pragma once

#include <span>

namespace troupe::models {

/// Overwrites `target`; `incoming` has as many elements.
void ema_update(std::span<float> target, std::span<const float> incoming,
                double decay);

} // namespace troupe::models
