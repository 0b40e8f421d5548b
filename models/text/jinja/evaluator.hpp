// Evaluates a template's tree over variables.
#pragma once

#include "models/text/jinja/syntax.hpp"
#include "models/text/jinja/value.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace troupe::models::jinja {

struct Rendered {
  std::string text;
  /// Byte ranges [begin, end) of text printed by {% generation %} blocks.
  std::vector<std::pair<std::size_t, std::size_t>> generated;
};

/// Throws TemplateError with the line; also for templates that run or print
/// without end.
Rendered render(const Body& body, Named variables);

} // namespace troupe::models::jinja
