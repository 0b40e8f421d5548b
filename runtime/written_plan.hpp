// A plan that the user wrote, in a file or into the settings, and where each
// part of it stands, so that a mistake is named with its line.
#pragma once

#include "config/settings.hpp"
#include "plans/execution_plan.hpp"
#include "plans/plan_check.hpp"

#include <functional>
#include <optional>
#include <string>

namespace troupe::runtime {

struct WrittenPlan {
  plans::ExecutionPlan plan;
  std::string name;         ///< the file's, or "written in the settings"
  bool has_cluster = false; ///< else `plan.cluster` means nothing
};

/// What `settings.plan` holds or which file it names; nullopt for `auto` and
/// for names of presets. Throws ConfigError with the line of the mistake.
std::optional<WrittenPlan> written_plan(const Settings& settings);

/// Throws ConfigError: the plan is neither `auto`, nor a preset, nor a file.
[[noreturn]] void refuse_plan_name(const Settings& settings);

/// What `make`, a preset, gives; a refusal gets the place where the user named
/// the preset.
plans::ExecutionPlan
named_by_user(const Settings& settings,
              const std::function<plans::ExecutionPlan()>& make);

/// Where the user wrote what the plan check complains about: the line of the
/// plan's file or mapping, of the setting, else "plan NAME: " of a plan that
/// nobody wrote.
plans::MistakePlace places_of_plan(const Settings& settings,
                                   const std::string& plan_name);

} // namespace troupe::runtime
