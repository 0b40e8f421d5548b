#include "models/text/jinja/steps.hpp"

#include "models/text/jinja/value.hpp"

#include <cstdint>

namespace troupe::models::jinja {

namespace {

constexpr std::size_t step_limit = 20'000'000; // a second or two
constexpr std::size_t step_bytes = 64;         // bytes of a text per step
constexpr std::size_t step_names = 16; // compared per step, most only by length

thread_local std::size_t steps_left = SIZE_MAX;

} // namespace

void count_steps(std::size_t steps) {
  if (steps > steps_left)
    throw TemplateError("the template does not end");
  steps_left -= steps;
}

void count_bytes(std::size_t bytes) {
  count_steps(bytes / step_bytes);
}

void count_names(std::size_t names) {
  count_steps(names / step_names);
}

StepLimit::StepLimit() : outside_(steps_left) {
  steps_left = step_limit;
}

StepLimit::~StepLimit() {
  steps_left = outside_;
}

} // namespace troupe::models::jinja
