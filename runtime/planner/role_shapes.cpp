#include "runtime/planner/role_shapes.hpp"

#include "config/base/error.hpp"
#include "config/model/known_models.hpp"
#include "config/model/missing_folder.hpp"
#include "plans/workflow/role_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace troupe::runtime {

namespace fs = std::filesystem;

std::string model_path_key(const plans::Role& role) {
  return "models." + role.name + ".path";
}

fs::path model_folder(const Settings& settings, const plans::Role& role) {
  const auto model = settings.models.find(role.name);
  return model == settings.models.end() ? fs::path{}
                                        : fs::path(model->second.path);
}

namespace {

std::string folder_hint(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / "adapter_config.json", ignored))
    return "troupe convert --model " + folder.string()
           + " --out MERGED, which merges adapters";
  return fs::exists(folder, ignored)
           ? "a folder that transformers' save_pretrained wrote"
           : missing_folder_hint(folder);
}

void require_folder(const Settings& settings, const plans::Role& role) {
  const auto folder = model_folder(settings, role);
  std::error_code ignored;
  if (fs::is_regular_file(folder / "config.json", ignored))
    return;
  throw ConfigError(
    {.place = place_of(settings, model_path_key(role)),
     .path = model_path_key(role),
     .expected = "a model folder with a config.json",
     .got = folder.empty() ? "nothing" : "'" + folder.string() + "'",
     .hint = folder_hint(folder)});
}

std::string size_text(const ParameterShape& shape) {
  return shape.vector ? std::to_string(shape.rows)
                      : fmt::format("{} x {}", shape.rows, shape.cols);
}

/// Checks that an EMA role has the parameters of the role that it follows.
void check_same_parameters(const Settings& settings, const plans::Role& role,
                           const std::map<std::string, ModelShape>& shapes) {
  const auto& tracked = role.ema->role;
  const auto ours = parameters(shapes.at(role.name));
  const auto theirs = parameters(shapes.at(tracked));
  const auto expect = [&](const std::string& got) {
    throw ConfigError({.place = place_of(settings, model_path_key(role)),
                       .path = model_path_key(role),
                       .expected = "a model of the same shape as " + tracked
                                   + ", which it follows",
                       .got = got,
                       .hint = fmt::format("{}={}", model_path_key(role),
                                           settings.models.at(tracked).path)});
  };
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
    if (ours[i].name != theirs[i].name)
      expect(fmt::format("{} in place of {}", ours[i].name, theirs[i].name));
    else if (size_text(ours[i]) != size_text(theirs[i]))
      expect(fmt::format("{} of {} in place of {}", ours[i].name,
                         size_text(ours[i]), size_text(theirs[i])));
  if (ours.size() != theirs.size())
    expect(
      fmt::format("{} parameters in place of {}", ours.size(), theirs.size()));
}

/// Returns the shape of each role, as `read` finds it, with its head.
template <class Read>
RoleShapes shapes_of(const Settings& settings, const plans::Workflow& workflow,
                     const Read& read) {
  RoleShapes shapes;
  for (const auto& role : workflow.roles) {
    shapes[role.name] = plans::role_shape(read(role), role, settings);
  }
  for (const auto& role : workflow.roles)
    if (role.ema)
      check_same_parameters(settings, role, shapes);
  return shapes;
}

} // namespace

RoleShapes read_shapes(const Settings& settings,
                       const plans::Workflow& workflow) {
  return shapes_of(settings, workflow, [&](const plans::Role& role) {
    require_folder(settings, role);
    return read_model_shape(model_folder(settings, role));
  });
}

RoleShapes planned_shapes(const Settings& settings,
                          const plans::Workflow& workflow) {
  return shapes_of(settings, workflow, [&](const plans::Role& role) {
    const auto folder = model_folder(settings, role);
    std::error_code ignored;
    if (!fs::exists(folder, ignored))
      if (const auto* known = find_known_model(folder.string()))
        return known->shape;
    require_folder(settings, role);
    return read_model_shape(folder);
  });
}

} // namespace troupe::runtime
