// Where the files of a run lie (INTERFACE, "Files of a run") and who may write
// them: one master at a time, held by a lock that a killed process gives back.
// Paths only; what stands in the files is run_status, jsonl_file, resume.
#pragma once

#include "config/ids.hpp"

#include <cstdint>
#include <filesystem>
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
  std::filesystem::path stop_file() const;     ///< exists: stop was asked for
  std::filesystem::path lock_file() const;
  std::filesystem::path worker_log(WorkerId worker) const;
  std::filesystem::path attempt_folder(std::uint32_t attempt) const;
  std::filesystem::path tensorboard_folder() const;
  std::filesystem::path trace_folder() const;
  std::filesystem::path trace_json() const;
  std::filesystem::path checkpoints_folder() const;
  /// checkpoints/step_000020: the state after 20 committed steps.
  std::filesystem::path checkpoint(std::uint32_t step) const;
  std::filesystem::path eval_file(std::uint32_t step) const;

  bool exists() const;
  /// Makes the folder with logs/ and trace/. ConfigError if it cannot.
  void create() const;
  /// ConfigError unless the folder, or the one it would be made in, is
  /// writable. Makes nothing.
  void check_writable() const;
  /// Committed steps of every complete checkpoint (manifest.json), ascending.
  std::vector<std::uint32_t> checkpoints() const;
  /// 1 + the highest attempts/NN; 1 in a new folder.
  std::uint32_t next_attempt() const;
  /// Moves the folder to NAME.1 (or the next free number); returns where.
  std::filesystem::path rename_old() const;

private:
  std::filesystem::path root_;
};

/// Held by the master while it runs; the kernel frees it with the process.
class RunLock {
public:
  /// ConfigError if another process holds it.
  explicit RunLock(const RunFolder& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

private:
  int fd_ = -1;
};

/// Whether a master runs in `folder` (somebody holds the lock).
bool is_active(const RunFolder& folder);
/// Blocks until no master runs in `folder`.
void wait_until_idle(const RunFolder& folder);

} // namespace troupe::runtime
