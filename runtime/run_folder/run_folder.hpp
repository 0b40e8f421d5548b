// Paths of the files of a run (docs/interface.md) and the right to
// write them: one master at a time, held by a lock that the kernel frees with a
// killed process. Paths only; contents are in run_status, jsonl_file, resume.
#pragma once

#include "config/base/ids.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

class RunFolder {
public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const noexcept {
    return root_;
  }
  std::string name() const; ///< last part of the path: the run's name

  std::filesystem::path config_file() const;   ///< config.yaml, resolved
  std::filesystem::path plan_file() const;     ///< plan.yaml
  std::filesystem::path dataflow_file() const; ///< dataflow.json: run_graph
  std::filesystem::path inputs_file() const;   ///< inputs.json: run_inputs
  std::filesystem::path index_file() const;    ///< data.index: run_rows
  std::filesystem::path metrics_file() const;  ///< metrics.jsonl
  std::filesystem::path samples_file() const;  ///< samples.jsonl
  std::filesystem::path status_file() const;   ///< status.json
  std::filesystem::path failures_file() const; ///< failures.jsonl
  std::filesystem::path log_file() const;      ///< log.txt, the master's
  std::filesystem::path stop_file() const;     ///< exists: a stop was requested
  std::filesystem::path lock_file() const;
  std::filesystem::path secret_file() const;     ///< .token: run_secret
  std::filesystem::path page_token_file() const; ///< .page_token: page_token
  std::filesystem::path
  agents_token_file() const; ///< .agents_token: agents_token
  std::filesystem::path worker_log(WorkerId worker) const;
  /// Returns the worker whose log has this name; other files lie there too.
  static std::optional<WorkerId>
  worker_of_log(const std::filesystem::path& file);
  std::filesystem::path attempt_folder(std::uint32_t attempt) const;
  std::filesystem::path tensorboard_folder() const;
  std::filesystem::path trace_folder() const;
  std::filesystem::path trace_json() const;
  std::filesystem::path checkpoints_folder() const;
  /// Returns checkpoints/step_000020: the state after 20 committed steps.
  std::filesystem::path checkpoint(std::uint32_t step) const;
  std::filesystem::path eval_file(std::uint32_t step) const;

  bool exists() const;
  /// Creates the folder with logs/ and trace/. Throws ConfigError if it cannot.
  void create() const;
  /// Throws ConfigError unless the folder, or the one it would be created in,
  /// is writable. Creates nothing.
  void check_writable() const;
  /// Returns the committed steps of every complete checkpoint (manifest.json),
  /// ascending.
  std::vector<std::uint32_t> checkpoints() const;
  /// Returns the last of them, if there is one.
  std::optional<std::uint32_t> newest_checkpoint() const;
  /// Renames the checkpoints after `step` to NAME.damaged and points `latest`
  /// at that of `step`. Throws FailureError (io).
  void set_aside_after(std::uint32_t step) const;
  /// Returns 1 + the highest attempts/NN; 1 in a new folder.
  std::uint32_t next_attempt() const;
  /// Renames the folder to NAME.1 (or the next free number); returns the new
  /// path.
  std::filesystem::path rename_old() const;

private:
  std::filesystem::path root_;
};

/// Lock of a master while it runs; the kernel frees it with the process.
class RunLock {
public:
  /// Throws ConfigError if another process holds it.
  explicit RunLock(const RunFolder& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

private:
  int fd_ = -1;
};

/// Returns whether a master runs in `folder` (its lock is held).
bool is_active(const RunFolder& folder);
/// Blocks until no master runs in `folder`.
void wait_until_idle(const RunFolder& folder);

} // namespace troupe::runtime
