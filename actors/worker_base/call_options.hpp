// Derives an engine's options from the settings: sampling options, train
// specifications, inference options. One place, so that every device and every
// command interprets the same YAML alike.
#pragma once

#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"
#include "models/engine/engine.hpp"
#include "models/generate/generate_options.hpp"
#include "plans/memory/response_room.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/workflow/workflow.hpp"

namespace troupe::actors {

/// Returns the optimizer steps of one call in one step of the run.
std::uint32_t mini_batches_of(const Settings& settings,
                              const plans::Workflow& workflow);
/// Returns the passes over the samples of a step.
std::uint32_t epochs_of(const Settings& settings,
                        const plans::Workflow& workflow);

/// Returns the samples per row of data.train, or of eval.data.
std::uint32_t samples_per_row(const Settings& settings,
                              const plans::Workflow& workflow, bool evaluates);

/// `room`: the capacity that the plan leaves for the call; empty: no limits but
/// those of the settings.
models::GenerateOptions generate_options(const Settings& settings,
                                         const plans::Call& call,
                                         const ModelShape& shape,
                                         const plans::ResponseRoom& room);
models::InferOptions infer_options(const Settings& settings,
                                   const plans::Call& call,
                                   const plans::Placement& placement);
/// Returns the master's half of trace.max_gb: it records every order and reply
/// of a run, so its events grow with the number of devices.
std::uint64_t trace_bytes_of_master(const Settings& settings);
/// Returns one worker's share of the other half.
std::uint64_t trace_bytes_of_worker(const Settings& settings,
                                    const plans::Cluster& cluster);
/// Returns the train specification of a call without its mini-batches.
models::TrainSpec train_spec(const Settings& settings, const plans::Call& call,
                             const plans::Placement& placement);
/// Returns the specification of a role's shard on one device, built from
/// `folder`.
models::Engine::Spec engine_spec(const Settings& settings,
                                 const plans::Workflow& workflow,
                                 const plans::Role& role,
                                 const std::string& folder);

} // namespace troupe::actors
