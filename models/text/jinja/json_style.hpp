// How a value is written as JSON, and the arguments of the filter tojson that
// say so, as transformers' own tojson takes them: ensure_ascii, indent,
// separators and sort_keys, by place or by name.
#pragma once

#include "models/text/jinja/value.hpp"

#include <optional>
#include <string>

namespace troupe::models::jinja {

/// The options of json.dumps.
struct JsonStyle {
  std::optional<std::string> indent; ///< of each level; nullopt: on one line
  std::string between = ", ";
  std::string behind_key = ": ";
  bool ascii = false;
  bool sorted = false;
};

/// TemplateError for other arguments.
JsonStyle json_style(const Arguments& arguments);

} // namespace troupe::models::jinja
