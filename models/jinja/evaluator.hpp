// Runs a template's tree over variables.
#pragma once

#include "models/jinja/syntax.hpp"
#include "models/jinja/value.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace troupe::models::jinja {

struct Rendered {
  std::string text;
  /// [begin, end) in bytes of what {% generation %} blocks printed.
  std::vector<std::pair<std::size_t, std::size_t>> generated;
};

/// Throws TemplateError with the line; also for templates that run or print
/// without end.
Rendered render(const Body& body, Dict variables);

} // namespace troupe::models::jinja
