#include "config/base/checkpoint_name.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace troupe {

namespace {

constexpr std::string_view checkpoint_prefix = "step_";

} // namespace

std::string checkpoint_name(StepId next_step) {
  return fmt::format("{}{:06}", checkpoint_prefix, next_step.value);
}

std::optional<StepId> step_of_checkpoint(std::string_view name) {
  if (!name.starts_with(checkpoint_prefix))
    return std::nullopt;
  std::uint32_t number = 0;
  std::from_chars(name.data() + checkpoint_prefix.size(),
                  name.data() + name.size(), number);
  const StepId step{number};
  return checkpoint_name(step) == name ? std::optional(step) : std::nullopt;
}

} // namespace troupe
