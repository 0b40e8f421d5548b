// The input files of a run, checked before any process starts: model folders,
// tokenizers, the data file.
#pragma once

#include "config/model_shape.hpp"
#include "config/settings.hpp"
#include "plans/execution_plan.hpp"
#include "plans/workflow.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe::models {
class Dataset;
} // namespace troupe::models

namespace troupe::runtime {

/// Each role's config.json, with the head that the workflow wants.
/// ConfigError at the place of the setting for a folder that is not there.
std::map<std::string, ModelShape> read_shapes(const Settings& settings,
                                              const plans::Workflow& workflow);

/// That weights are complete, that tokenizers fit the models, and that roles
/// which see the same tokens agree on them. Gives a sentence for each role
/// whose folder lacks the scalar head that the workflow wants (it gets a new
/// one), and for each trained one whose folder asks for dropout (it gets none).
std::vector<std::string>
check_models(const Settings& settings, const plans::Workflow& workflow,
             const std::map<std::string, ModelShape>& shapes);

/// The folder whose tokenizer reads the data file: the first role's.
std::filesystem::path tokenizer_folder(const Settings& settings,
                                       const plans::Workflow& workflow);

using RoleShapes = std::map<std::string, ModelShape>;

/// That `eval.data`, where set, can be read and judged under the plan, by
/// models that have places for its rows.
void check_evaluation(const Settings& settings, const plans::Workflow& workflow,
                      const plans::ExecutionPlan& plan,
                      const RoleShapes& shapes);

/// That `run.replay`, where set, has the samples of every step of the run.
void check_replay(const Settings& settings, const plans::Workflow& workflow,
                  std::uint32_t num_steps, std::uint32_t samples_per_step);

/// That rules, files and addresses of `reward`, where the workflow has them
/// score, are what they should be.
void check_reward(const Settings& settings, const plans::Workflow& workflow);

/// Warns of rows of data.train that are left out or cut. ConfigError for fields
/// that they lack, and for a row that is longer than a model has places for.
void check_rows(const Settings& settings, const plans::Workflow& workflow,
                const RoleShapes& shapes, const models::Dataset& dataset);

} // namespace troupe::runtime
