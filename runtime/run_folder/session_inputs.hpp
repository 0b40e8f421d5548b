// The input files of a run, checked before any process starts: model folders,
// tokenizers, the data file.
#pragma once

#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"
#include "models/data/ptx_data.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"
#include "runtime/planner/role_shapes.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Checks that weights are complete, that tokenizers fit the models, and that
/// roles which see the same tokens have equivalent ones. Returns a sentence for
/// each role whose folder lacks the scalar head that the workflow needs (it
/// gets a new one), and for each trained one whose folder has dropout (it gets
/// none).
std::vector<std::string>
check_models(const Settings& settings, const plans::Workflow& workflow,
             const std::map<std::string, ModelShape>& shapes);

/// Returns the folder whose tokenizer reads the data file: the first role's.
std::filesystem::path tokenizer_folder(const Settings& settings,
                                       const plans::Workflow& workflow);

/// Checks that `eval.data`, if set, can be read and scored under the plan, by
/// models with positions for its rows.
void check_evaluation(const Settings& settings, const plans::Workflow& workflow,
                      const plans::ExecutionPlan& plan,
                      const RoleShapes& shapes);

/// Checks that the rows of `data.ptx`, if set, can be trained on, and returns
/// how long they are. Throws ConfigError.
std::optional<models::PtxTokens> check_ptx(const Settings& settings,
                                           const plans::Workflow& workflow,
                                           const RoleShapes& shapes);

/// Checks that `run.replay`, if set, has the samples of every step of the run.
void check_replay(const Settings& settings, const plans::Workflow& workflow,
                  std::uint32_t num_steps, std::uint32_t samples_per_step);

/// Checks rules, files and addresses of `reward`, if the workflow uses them.
void check_reward(const Settings& settings, const plans::Workflow& workflow);

/// Logs a warning for rows of data.train that are left out or cut. Throws
/// ConfigError for fields that they lack, and for a row that is longer than a
/// model's positions.
void check_rows(const Settings& settings, const plans::Workflow& workflow,
                const RoleShapes& shapes, const models::Dataset& dataset);

} // namespace troupe::runtime
