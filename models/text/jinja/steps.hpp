// Limit of a template's computation: a step per expression, and per entry or
// member that an operation touches, so that no template runs for hours, however
// long its lists are.
#pragma once

#include <cstddef>

namespace troupe::models::jinja {

/// Counts `steps` of the template that this thread renders. Throws
/// TemplateError if none are left. Outside templates nothing is limited.
void count_steps(std::size_t steps = 1);
/// Counts the steps of copying, comparing or searching a text of that size.
void count_bytes(std::size_t bytes);
/// Counts the steps of a look-up among that many names.
void count_names(std::size_t names);

/// Scope in which this thread renders a template.
class StepLimit {
public:
  StepLimit();
  ~StepLimit();
  StepLimit(const StepLimit&) = delete;
  StepLimit& operator=(const StepLimit&) = delete;

private:
  std::size_t outside_; ///< remaining steps of the outer scope
};

} // namespace troupe::models::jinja
