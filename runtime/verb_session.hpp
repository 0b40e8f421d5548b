// `generate`, `score` and `convert` as sessions: the settings of a small
// workflow with one model, a plan with the asked-for degrees, and a run folder
// that lies beside the output until it is renamed into place. So these verbs
// are the actors of a run, and there is one road to an engine.
#pragma once

#include "config/error.hpp"
#include "config/settings.hpp"
#include "models/snapshot.hpp"
#include "runtime/run_rows.hpp"
#include "runtime/temporary_folder.hpp"
#include "runtime/verbs/model_options.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

namespace troupe {
struct ModelShape;
}

namespace troupe::runtime {

/// A session that was stopped leaves nothing to go on with: says so, and that
/// SIGTERM is a failure here.
ExitCode verb_exit_code(ExitCode code);

class VerbSession {
public:
  /// Makes the run folder beside `out`, or below TMPDIR where `out` is a pipe
  /// or a device, and removes those of sessions that were killed there.
  /// ConfigError where that cannot be.
  VerbSession(const std::string& verb, const ModelOptions& model,
              const ModelShape& shape, const std::filesystem::path& out);

  /// For the verb to fill in: data, rollout, seed.
  Settings& settings() {
    return settings_;
  }

  /// What a run did, all steps together.
  struct Outcome {
    ExitCode code = ExitCode::done; ///< else the error is on stderr already
    std::uint64_t made_tokens = 0;
    double seconds = 0; ///< of the steps, without starting the processes
  };
  /// Reads `data`, the rows of data.train, once. PlanError for degrees that
  /// cannot run.
  Outcome run_rows(std::shared_ptr<const models::Dataset> data);
  /// Loads the model and saves it as `store` says.
  Outcome run_convert(const models::HfStore& store);

  /// Renames the rows (or the converted model) to `out`; rows also go into a
  /// pipe.
  void keep_rows();
  void keep_model();

private:
  Outcome run(std::uint32_t num_steps, RunRows rows,
              const std::optional<models::HfStore>& store);

  ModelOptions model_;
  const ModelShape& shape_;
  std::filesystem::path out_;
  TemporaryFolder folder_;
  std::string role_;
  Settings settings_;
};

} // namespace troupe::runtime
