// Why nothing fits, in one line that says what would: the smallest peak that
// was found, where it is, and the fewest devices on which a plan does fit.
#pragma once

#include "plans/local_search.hpp"

#include <optional>
#include <string>

namespace troupe::plans {

/// A call that fits no device in any option, else nothing: then all calls
/// together may still not fit.
std::optional<std::string> why_a_call_does_not_fit(const SearchSpace& space);

/// Of a space whose calls fit alone; `point` has the smallest peak known.
std::string why_calls_do_not_fit(const SearchSpace& space,
                                 const SpacePoint& point);

} // namespace troupe::plans
