#include "runtime/planner/user_plan.hpp"

#include "config/yaml/yaml_tree.hpp"
#include "plans/plan/plan_names.hpp"
#include "plans/presets/presets.hpp"
#include "runtime/base/jsonl_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

namespace troupe::runtime {

namespace {

bool names_plan_file(const Settings& settings) {
  std::error_code ignored;
  return !settings.plan_inline && settings.plan != "auto"
         && std::filesystem::is_regular_file(settings.plan, ignored);
}

/// Parses the mapping without lines: those of its text mean nothing to the
/// user.
plans::ExecutionPlan parse_inline(const Settings& settings) {
  try {
    return plans::parse_plan(settings.plan, "plan");
  } catch (const ConfigError& error) {
    auto parts = error.parts();
    parts.path = parts.path.empty() ? "plan" : "plan." + parts.path;
    parts.place = nearest_place_of(settings, parts.path);
    throw ConfigError(parts);
  }
}

bool has_cluster(const std::string& yaml, const std::string& file) {
  return parse_yaml(yaml, file).find("cluster") != nullptr;
}

/// Returns the place of the deepest part of `path` that the file has.
Place place_in_file(const std::string& file, std::string path) {
  const auto root = parse_yaml(read_file(file), file);
  while (true) {
    if (const auto* node = root.find_path(path))
      return node->place;
    const auto dot = path.rfind('.');
    path.resize(dot == path.npos ? 0 : dot);
  }
}

/// Mistakes of batch sizes and evaluation concern settings.
bool is_in_plan(const std::string& path) {
  for (const char* section : {"cluster", "calls", "replicas", "roles", "lag"})
    if (path == section || path.starts_with(std::string(section) + "."))
      return true;
  return false;
}

Place place_of_setting(const Settings& settings, const std::string& path) {
  if (was_set(settings, path))
    return place_of(settings, path);
  return {place_of(settings, "workflow").file, 0}; // the setting's default is
                                                   // wrong
}

void check_same(const Settings& settings, const char* key,
                const std::optional<int>& setting, std::uint32_t of_plan,
                const std::string& plan_name) {
  if (!setting || static_cast<std::uint32_t>(*setting) == of_plan)
    return;
  const auto path = std::string("cluster.") + key;
  throw PlanError(
    {.place = place_of(settings, path),
     .path = path,
     .expected = fmt::format("{} as in plan {}", of_plan, plan_name),
     .got = std::to_string(*setting),
     .hint = fmt::format("{}={} or another plan", path, of_plan)});
}

/// Returns the place and path of `path` in the plan that the user named: in its
/// file or mapping, or where a preset is named.
std::pair<Place, std::string> place_in_plan(const Settings& settings,
                                            const std::string& path) {
  if (settings.plan_inline)
    return {nearest_place_of(settings, "plan." + path), "plan." + path};
  if (names_plan_file(settings))
    return {place_in_file(settings.plan, path), path};
  return {place_of(settings, "plan"), "plan"};
}

std::pair<Place, std::string> place_of_lag(const Settings& settings,
                                           const std::string& call) {
  return place_in_plan(settings, "lag." + call);
}

/// Throws ConfigError if the first slice of `call` lags further than allowed.
void check_max_lag_of_slices(const Settings& settings,
                             const plans::ExecutionPlan& plan,
                             const std::string& call) {
  const auto slices = plan.slices_of(call);
  const auto most = plan.most_lag_of(call);
  if (slices == 1 || !lags_too_far(settings, most))
    return;
  const auto [place, path]
    = place_in_plan(settings, "calls." + call + ".slices");
  throw ConfigError(
    {.place = place,
     .path = path,
     .expected = "slices of which the first lags " + allowed_lag_text(settings),
     .got = fmt::format("{} slices with a lag of {}, so that it lags {}",
                        slices, plan.lag_of(call), most),
     .hint = fmt::format("algorithm.max_lag={}", most)});
}

} // namespace

std::optional<UserPlan> user_plan(const Settings& settings) {
  std::optional<UserPlan> written;
  if (settings.plan_inline) {
    written = UserPlan{.plan = parse_inline(settings),
                       .name = "written in the settings",
                       .has_cluster = has_cluster(settings.plan, "plan")};
  } else if (names_plan_file(settings)) {
    const auto text = read_file(settings.plan);
    written = UserPlan{.plan = plans::parse_plan(text, settings.plan),
                       .name = settings.plan,
                       .has_cluster = has_cluster(text, settings.plan)};
  }
  if (written)
    check_max_lag(settings, written->plan);
  return written;
}

std::uint32_t max_lag_of(const Settings& settings) {
  return static_cast<std::uint32_t>(
    settings.algorithm.correction.max_lag.value_or(0));
}

bool lags_too_far(const Settings& settings, std::uint32_t lag) {
  return settings.algorithm.correction.max_lag && lag > max_lag_of(settings);
}

std::string allowed_lag_text(const Settings& settings) {
  const auto place = place_of(settings, "algorithm.max_lag");
  auto text
    = fmt::format("at most {}, algorithm.max_lag", max_lag_of(settings));
  if (place.line > 0)
    text += fmt::format(" ({}:{})", place.file, place.line);
  else if (!place.file.empty())
    text += " (" + place.file + ")";
  return text;
}

void check_max_lag(const Settings& settings, const plans::ExecutionPlan& plan) {
  for (const auto& [call, placement] : plan.calls)
    check_max_lag_of_slices(settings, plan, call);
  for (const auto& [call, lag] : plan.lag) {
    if (!lags_too_far(settings, lag))
      continue;
    const auto [place, path] = place_of_lag(settings, call);
    const bool is_preset = path == "plan";
    throw ConfigError(
      {.place = place,
       .path = path,
       .expected = (is_preset ? "lags of " : "") + allowed_lag_text(settings),
       .got = is_preset
                ? fmt::format("{}, whose {} lags {}", settings.plan, call, lag)
                : std::to_string(lag),
       .hint = fmt::format("algorithm.max_lag={}", lag)});
  }
}

void check_workers(const Settings& settings, const plans::Cluster& cluster) {
  if (cluster.workers_per_node > cluster.devices_per_node)
    throw ConfigError(
      {.place = place_of(settings, "cluster.workers_per_node"),
       .path = "cluster.workers_per_node",
       .expected = fmt::format("at most one worker a device ({})",
                               cluster.devices_per_node),
       .got = std::to_string(cluster.workers_per_node),
       .hint
       = fmt::format("cluster.devices_per_node={}", cluster.workers_per_node)});
}

plans::Cluster cluster_of(const Settings& settings, const UserPlan& written) {
  const auto& given = settings.cluster;
  auto cluster = written.plan.cluster;
  check_same(settings, "nodes", given.nodes, cluster.nodes, written.name);
  check_same(settings, "devices_per_node", given.devices_per_node,
             cluster.devices_per_node, written.name);
  // the distribution of devices over processes is not part of a plan
  if (given.workers_per_node)
    cluster.workers_per_node
      = static_cast<std::uint32_t>(*given.workers_per_node);
  check_workers(settings, cluster);
  return cluster;
}

void refuse_plan_name(const Settings& settings) {
  auto names = plans::preset_names();
  const auto expected
    = fmt::format("auto, a preset ({}) or a plan file", fmt::join(names, ", "));
  names.emplace_back("auto");
  const bool is_path = settings.plan.find('/') != settings.plan.npos
                       || std::filesystem::path(settings.plan).has_extension();
  const auto near = plans::quoted_nearest(settings.plan, names);
  throw ConfigError(
    {.place = place_of(settings, "plan"),
     .path = "plan",
     .expected = expected,
     .got = "'" + settings.plan + "'" + (is_path ? ", which is no file" : ""),
     .hint
     = near.empty() ? "`troupe plan show CONFIG` to write a plan file" : near});
}

plans::ExecutionPlan
named_by_user(const Settings& settings,
              const std::function<plans::ExecutionPlan()>& make) {
  try {
    auto plan = make();
    check_max_lag(settings, plan);
    return plan;
  } catch (const PlanError& error) {
    throw PlanError(to_string(place_of(settings, "plan")) + error.what());
  }
}

plans::MistakePlace places_of_plan(const Settings& settings,
                                   const std::string& plan_name) {
  return [settings, plan_name](const std::string& path) -> std::string {
    if (!is_in_plan(path))
      return to_string(place_of_setting(settings, path));
    if (settings.plan_inline)
      return to_string(nearest_place_of(settings, "plan." + path)) + "plan.";
    if (names_plan_file(settings))
      return to_string(place_in_file(settings.plan, path));
    const auto named = place_of(settings, "plan");
    if (settings.plan != "auto" && !named.file.empty())
      return to_string(named);
    return "plan " + plan_name + ": ";
  };
}

} // namespace troupe::runtime
