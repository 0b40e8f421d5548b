// Functions of a workflow file that Python computes, in child processes of this
// worker that are pooled, watched and replaced as reward programs are. A line
// names a part of the samples; their values are in memory files that the
// processes map as numpy arrays. Each sample, group or batch is computed alone,
// so no number of processes changes a result.
#pragma once

#include "actors/worker_base/user_calls.hpp"
#include "net/child_programs/line_programs.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace troupe::actors {

struct WorkerContext;

class PythonFunctions {
public:
  /// Sets what the entry's function writes on the samples, which are sorted by
  /// id, and the carried values. Called on the worker's host thread. Throws
  /// FailureError (bad_input) with the place in the user's file.
  void run(const WorkerContext& worker, const UserEntry& entry,
           std::span<Sample> samples, detail::CarriedValues& carried);
  /// Ends a call that runs, and all later ones. Thread-safe.
  void stop() {
    stopped_ = true;
  }

private:
  net::LinePrograms& programs(const WorkerContext& worker,
                              const UserEntry& entry);

  std::map<std::string, std::unique_ptr<net::LinePrograms>> programs_;
  std::atomic<bool> stopped_ = false;
};

/// Returns the command of a process that computes the entry's function. It
/// writes `python_function_ready` once the file is loaded.
std::vector<std::string> python_function_command(const UserEntry& entry);
inline constexpr const char* python_function_ready = "ready";

} // namespace troupe::actors
