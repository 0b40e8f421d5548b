// Everything about a run, decided and checked before a process starts: what it
// computes, on which rows, which steps, in which folder, in which mode and for
// which listeners. `prepare` builds it and writes no run folder;
// `begin_attempt` then claims the run folder.
#pragma once

#include "actors/master/step_report.hpp"
#include "models/data/ptx_data.hpp"
#include "models/data/source_rows.hpp"
#include "runtime/prepare/planned_work.hpp"
#include "runtime/prepare/run_attempt.hpp"
#include "runtime/prepare/run_mode.hpp"
#include "runtime/run_folder/run_rows.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace troupe::runtime {

/// data.train, opened, and what it is trained with.
struct RunData {
  RunRows rows;                                   ///< empty for `convert`
  std::uint64_t num_rows = 0;                     ///< usable rows
  std::uint64_t bad_rows = 0;                     ///< skipped rows
  std::optional<models::PtxTokens> texts = {};    ///< of data.ptx
  std::optional<models::SourceRows> sources = {}; ///< of several files
};

/// Range of steps, numbered since the run's first attempt.
struct RunSteps {
  std::uint32_t first = 0; ///< committed steps that it resumes from
  std::uint32_t end = 0;   ///< end of the whole run
  std::chrono::duration<double> max_time{0}; ///< 0: none
  std::uint32_t snapshot_every = 0;          ///< steps; 0: none
  bool copies_snapshots = false; ///< to other nodes, which may lose hosts
};

/// Callbacks of the session, on its own thread.
struct RunListeners {
  std::function<void(const actors::StepReport&)> on_step; ///< after its commit
  std::function<void(const actors::StepReport&)> on_evaluation;
  std::function<void(const actors::RunEnd&)> on_end; ///< outcome of the run
};

/// Output for the user of the run.
struct RunDisplay {
  bool quiet = false;
  bool opens_page = false; ///< whether to show the trace page in a browser
};

struct PreparedRun {
  PlannedWork work; ///< `auto` resolved in run.steps too
  RunData data;
  RunSteps steps;
  RunAttempt attempt;
  ModeOptions mode_options;
  RunListeners listeners;
  RunDisplay display;

  RunMode mode() const {
    return mode_of(mode_options);
  }
  /// Returns whether a signal ends the run at once: only training has
  /// checkpoints to stop after.
  bool stops_at_once() const {
    return mode() != RunMode::train;
  }
};

/// Resolves and checks settings, model folders, data file, plan and run folder.
/// Throws ConfigError (exit 2) or PlanError (exit 3) in the user's terms.
/// Writes nothing but, if a search has to measure first, its measurements.
PreparedRun prepare(const Settings& settings,
                    MeasuredNow measured = MeasuredNow::is_kept);

/// Claims the run folder: renames the old one if requested, creates it, writes
/// config.yaml, plan.yaml, inputs.json, data.index, dataflow.json and
/// attempts/NN/, cuts metrics.jsonl and samples.jsonl back to the first step,
/// removes an old stop request. The lock must exist as long as the run.
std::shared_ptr<class RunLock> begin_attempt(const PreparedRun& run);

/// Begins the next attempt at a run after a failure, in the folder that this
/// process has claimed: from the newest checkpoint, or from step 0. Throws
/// FailureError (io) if it cannot write there.
void begin_next_attempt(PreparedRun& run);

} // namespace troupe::runtime
