// Runs the program itself, `troupe train`, and reads its results: seconds of
// each step by wall and processor time, and the work in its trace. So a
// benchmark measures what a user gets: master, workers, actors, data plane and
// files included.
#pragma once

#include "bench.hpp"
#include <sys/types.h>

#include <map>

namespace troupe::bench {

struct RunRequest {
  std::vector<std::string> settings; ///< KEY=VALUE arguments
  std::filesystem::path run_folder;  ///< as resolved from the settings
  int threads = 1;                   ///< processors that the run may use
};

struct RunSteps {
  std::vector<double> wall_s;          ///< of each step, from commit to commit
  std::vector<double> cpu_s;           ///< of all processes of the run
  std::vector<nlohmann::json> metrics; ///< lines of metrics.jsonl
};

/// The work of a call in one step.
struct CallWork {
  double optimizer_steps = 0;
  double tokens = 0; ///< through forward passes of infer and train
};

/// `troupe train` as a running child; killed with this object.
class TroupeRun {
public:
  explicit TroupeRun(const RunRequest& request);
  ~TroupeRun();
  TroupeRun(const TroupeRun&) = delete;
  TroupeRun& operator=(const TroupeRun&) = delete;

  pid_t pid() const {
    return pid_;
  }
  /// Blocks for the next line of its output; false at the end.
  bool read_line(std::string& line);
  /// Returns its exit code; 128 + signal if one ended it.
  int wait();

private:
  pid_t pid_ = -1;
  int output_ = -1;
  std::string unread_;
};

/// Returns the path of the program `troupe` beside this one.
std::filesystem::path troupe_program();
/// Runs it from start to end. Throws if it fails, with the end of its output.
RunSteps run_steps(const RunRequest& request);
/// Returns the processor seconds so far of `pid` and all its descendants.
double cpu_seconds(pid_t pid);
/// Returns the descendants of `pid`, without itself.
std::vector<pid_t> children_of(pid_t pid);
/// Returns the work by call, averaged over steps [first, last] (counted from
/// 0), from the events in `run_folder`/trace.
std::map<std::string, CallWork>
traced_work(const std::filesystem::path& run_folder, std::uint32_t first,
            std::uint32_t last);

} // namespace troupe::bench
