// The weights of a role that follows another one, after an update of that one:
// an exponential moving average (EMA; Polyak and Juditsky 1992). Element by
// element, so a model may be blended whole or in any parts. With own the fp32
// next to `decay` and rest the fp32 next to 1 - own, the products of
//
//     own * target + rest * incoming
//
// are exact in double precision, and their sum is rounded there and to fp32:
// every compiler and processor gives the same bits. Zero padding stays zero.
#pragma once

#include <span>

namespace troupe::models {

/// Overwrites `target`; `incoming` has as many elements.
void blend(std::span<float> target, std::span<const float> incoming,
           double decay);

} // namespace troupe::models
