// `generate`, `score` and `convert` as sessions: the settings of a small
// workflow with one model, a plan with the requested degrees, and a run folder
// beside the output until it is renamed into place. So these commands use the
// actors of a run, and there is only one path to an engine.
#pragma once

#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "runtime/base/temporary_folder.hpp"
#include "runtime/commands/model_options.hpp"
#include "runtime/prepare/prepared_run.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>

namespace troupe {
struct ModelShape;
}

namespace troupe::runtime {

/// Returns the exit code of a command. A session that was stopped leaves
/// nothing to resume: reports that, and SIGTERM is a failure here.
ExitCode command_exit_code(ExitCode code);

class CommandSession {
public:
  /// Creates the run folder beside `out`, or below TMPDIR if `out` is a pipe or
  /// a device, and removes those of sessions that were killed there. Throws
  /// ConfigError if it cannot.
  CommandSession(const std::string& command, const ModelOptions& model,
                 const ModelShape& shape, const std::filesystem::path& out);

  /// Returns the settings, for the command to fill in: data, rollout, seed.
  Settings& settings() {
    return settings_;
  }

  /// Result of a run, over all steps.
  struct Outcome {
    ExitCode code = ExitCode::done; ///< otherwise the error is on stderr
                                    ///< already
    std::uint64_t made_tokens = 0;
    double seconds = 0; ///< duration of the steps, without starting the
                        ///< processes
  };
  /// Reads `data`, the rows of data.train, once. Throws PlanError for degrees
  /// that cannot run.
  Outcome run_rows(std::shared_ptr<const models::Dataset> data);
  /// Loads the model and saves it by the settings of `store`.
  Outcome run_convert(const models::HfStore& store);

  /// Renames the rows (or the converted model) to `out`; rows are also written
  /// into a pipe.
  void keep_rows();
  void keep_model();

private:
  PlannedWork plan_command(std::uint32_t num_steps) const;
  Outcome run(std::uint32_t num_steps, RunRows rows, ModeOptions mode_options);

  ModelOptions model_;
  const ModelShape& shape_;
  std::filesystem::path out_;
  TemporaryFolder folder_;
  std::string role_;
  Settings settings_;
};

} // namespace troupe::runtime
