// How much a template may compute: a step for every expression, and for every
// entry or member that an operation touches, so that no template runs for
// hours, however long its lists are.
#pragma once

#include <cstddef>

namespace troupe::models::jinja {

/// Counts `steps` of the template that this thread renders; TemplateError when
/// it has none left. Without a template nothing is limited.
void count_steps(std::size_t steps = 1);
/// Copying, comparing or searching a text of that size takes as many steps.
void count_bytes(std::size_t bytes);
/// Looking for a name among so many takes as many steps.
void count_names(std::size_t names);

/// A template is rendered on this thread while it lives.
class StepLimit {
public:
  StepLimit();
  ~StepLimit();
  StepLimit(const StepLimit&) = delete;
  StepLimit& operator=(const StepLimit&) = delete;

private:
  std::size_t outside_; ///< steps that were left
};

} // namespace troupe::models::jinja
