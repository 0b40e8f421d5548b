// A plan that the user wrote, in a file or in the settings, its cluster, and
// where each part of it is, so that a mistake is reported with its line.
#pragma once

#include "config/settings/settings.hpp"
#include "plans/check/plan_check.hpp"
#include "plans/plan/execution_plan.hpp"

#include <functional>
#include <optional>
#include <string>

namespace troupe::runtime {

struct UserPlan {
  plans::ExecutionPlan plan;
  std::string name;         ///< the file's, or "written in the settings"
  bool has_cluster = false; ///< otherwise `plan.cluster` is meaningless
};

/// Reads the plan in `settings.plan` or in the file that it names; nullopt for
/// `auto` and for names of presets. Throws ConfigError with the line of the
/// mistake, and if it lags further than `algorithm.max_lag` allows.
std::optional<UserPlan> user_plan(const Settings& settings);

/// Returns the limit of a search's lag: `algorithm.max_lag`, 0 where it is not
/// set.
std::uint32_t max_lag_of(const Settings& settings);
/// Returns whether `algorithm.max_lag` is set, and less than `lag`.
bool lags_too_far(const Settings& settings, std::uint32_t lag);
/// Returns "at most 1, algorithm.max_lag (FILE:LINE)".
std::string allowed_lag_text(const Settings& settings);
/// Throws ConfigError, which names both places, if a call of the plan that the
/// user named lags too far.
void check_max_lag(const Settings& settings, const plans::ExecutionPlan& plan);

/// Returns the cluster block of `written`, which has one. Throws PlanError if
/// numbers in the settings contradict it; the number of workers is that of the
/// settings.
plans::Cluster cluster_of(const Settings& settings, const UserPlan& written);

/// Throws ConfigError unless there is a device for each worker of the settings.
void check_workers(const Settings& settings, const plans::Cluster& cluster);

/// Throws ConfigError: the plan is neither `auto`, nor a preset, nor a file.
[[noreturn]] void refuse_plan_name(const Settings& settings);

/// Returns the preset that `make` makes; its errors get the place where the
/// user named the preset. Throws as `check_max_lag`.
plans::ExecutionPlan
named_by_user(const Settings& settings,
              const std::function<plans::ExecutionPlan()>& make);

/// Returns where the user wrote what the plan check refuses: the line of the
/// plan's file or mapping, of the setting, else "plan NAME: " for a plan that
/// no user wrote.
plans::MistakePlace places_of_plan(const Settings& settings,
                                   const std::string& plan_name);

} // namespace troupe::runtime
