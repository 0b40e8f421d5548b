// Divides the arguments of a macro's call over its parameters, as Jinja does:
// by position, then by name; what is left goes to `caller`, `varargs` and
// `kwargs` where the macro's body mentions them, and is refused elsewhere.
#pragma once

#include "models/text/jinja/syntax.hpp"
#include "models/text/jinja/value.hpp"

#include <vector>

namespace troupe::models::jinja {

struct MacroArguments {
  std::vector<const Value*> parameters; ///< of the given ones; null: absent
  Named special;                        ///< caller, varargs, kwargs
};

/// `given` must outlive the result.
MacroArguments divide_arguments(const Statement& macro, const Arguments& given);

} // namespace troupe::models::jinja
