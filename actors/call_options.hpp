// From settings to what an engine is asked to do: sampling options, train
// specifications, inference options. One place, so that every device and every
// verb reads the same meaning out of the same YAML.
#pragma once

#include "config/model_shape.hpp"
#include "config/settings.hpp"
#include "models/engine.hpp"
#include "models/generate_options.hpp"
#include "plans/answer_room.hpp"
#include "plans/execution_plan.hpp"
#include "plans/workflow.hpp"

namespace troupe::actors {

/// Optimizer steps of one call in one step of the run.
std::uint32_t mini_batches_of(const Settings& settings,
                              const plans::Workflow& workflow);
/// Passes over the samples of a step.
std::uint32_t epochs_of(const Settings& settings,
                        const plans::Workflow& workflow);

/// Samples of a row of data.train, or of eval.data.
std::uint32_t samples_per_row(const Settings& settings,
                              const plans::Workflow& workflow, bool evaluates);

/// `room`: what the plan leaves free for it; empty: no limits but those of the
/// settings.
models::GenerateOptions generate_options(const Settings& settings,
                                         const plans::Call& call,
                                         const ModelShape& shape,
                                         const plans::AnswerRoom& room);
models::InferOptions infer_options(const Settings& settings,
                                   const plans::Call& call,
                                   const plans::Placement& placement);
/// Returns the master's half of trace.max_gb: it records every order and answer
/// of a run, so its events grow with the number of devices.
std::uint64_t trace_bytes_of_master(const Settings& settings);
/// Returns one worker's share of the other half.
std::uint64_t trace_bytes_of_worker(const Settings& settings,
                                    const plans::Cluster& cluster);
/// All but the mini-batches.
models::TrainSpec train_spec(const Settings& settings, const plans::Call& call,
                             const plans::Placement& placement);
/// How a role's shard on one device is built from `folder`.
models::Engine::Spec engine_spec(const Settings& settings,
                                 const plans::Workflow& workflow,
                                 const plans::Role& role,
                                 const std::string& folder);

} // namespace troupe::actors
