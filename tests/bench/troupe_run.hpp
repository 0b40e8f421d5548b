// Runs the program itself, `troupe train`, and reads what it did: seconds of
// each step by the wall and by the processors, and the work that its trace
// shows. So a benchmark measures what a user gets: master, workers, actors,
// data plane and files included.
#pragma once

#include "bench.hpp"
#include <sys/types.h>

#include <map>

namespace troupe::bench {

struct RunRequest {
  std::vector<std::string> settings; ///< KEY=VALUE words
  std::filesystem::path run_folder;  ///< that the settings lead to
  int threads = 1;                   ///< processors that the run may use
};

struct RunSteps {
  std::vector<double> wall_s;          ///< of each step, from commit to commit
  std::vector<double> cpu_s;           ///< of all processes of the run
  std::vector<nlohmann::json> metrics; ///< lines of metrics.jsonl
};

/// What a call did in one step.
struct CallWork {
  double optimizer_steps = 0;
  double tokens = 0; ///< through forward passes of infer and train
};

/// `troupe train` as a child that runs now; killed with this object.
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
  /// Its exit code; 128 + signal if one ended it.
  int wait();

private:
  pid_t pid_ = -1;
  int output_ = -1;
  std::string unread_;
};

/// Path of the program `troupe` beside this one.
std::filesystem::path troupe_program();
/// A run from start to end. Throws if it fails, with its last words.
RunSteps run_steps(const RunRequest& request);
/// Processor seconds so far of `pid` and all its descendants.
double cpu_seconds(pid_t pid);
/// Descendants of `pid`, without itself.
std::vector<pid_t> children_of(pid_t pid);
/// Work by call, averaged over steps first .. last (counted from 0), from the
/// events in `run_folder`/trace.
std::map<std::string, CallWork>
traced_work(const std::filesystem::path& run_folder, std::uint32_t first,
            std::uint32_t last);

} // namespace troupe::bench
