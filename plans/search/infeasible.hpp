// Explains why nothing fits, in one line that names what would: the smallest
// peak of a call that fits nowhere, or else the smallest of a plan that was
// found, its device, and recomputation, or else the fewest devices on which a
// plan fits. What is named was tried in the search's own
// arithmetic.
#pragma once

#include "plans/search/local_search.hpp"

#include <optional>
#include <string>

namespace troupe::plans {

/// Returns the reason if a call fits no device in any option, else nullopt:
/// then all calls together may still not fit.
std::optional<std::string> why_a_call_does_not_fit(const SearchSpace& space);

/// Returns the reason for a space whose calls fit alone; `point` has the
/// smallest known peak.
std::string why_calls_do_not_fit(const SearchSpace& space,
                                 const SpacePoint& point);

} // namespace troupe::plans
