// The filters, tests and global functions that chat templates use.
#pragma once

#include "models/text/jinja/value.hpp"

#include <functional>
#include <string>

namespace troupe::models::jinja {

bool has_filter(const std::string& name);
/// Returns value | name(arguments). Throws TemplateError.
Value apply_filter(const std::string& name, const Value& value,
                   const Arguments& arguments);

bool has_test(const std::string& name);
/// Returns value is name(arguments). Throws TemplateError.
bool apply_test(const std::string& name, const Value& value,
                const Arguments& arguments);

/// namespace, range, dict, raise_exception and strftime_now; the last one
/// prints `now`, seconds since 1970, in local time.
Named global_functions(std::int64_t now);

} // namespace troupe::models::jinja
