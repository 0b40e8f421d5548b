// What the master knows of a step when it commits: which task ran when and
// where, the merged sums of all calls, bytes and tokens. The runtime turns it
// into metric names; nothing here knows files or consoles.
#pragma once

#include "actors/messages.hpp"
#include "config/error.hpp"
#include "models/sums.hpp"
#include "plans/step_graph.hpp"

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct TaskReport {
  std::string name; ///< "actor_gen", "actor_gen[2]", "actor@actor_gen"
  std::string call; ///< of a call or a chunk of it
  plans::TaskKind kind = plans::TaskKind::call;
  std::vector<Rank> devices;
  Clock::time_point started; ///< sent by the master
  Clock::time_point ended;   ///< answered
  std::vector<Seconds> busy; ///< of each part, on its device
  std::map<Rank, std::uint64_t> peak_bytes = {}; ///< of devices' memory
};

/// Seconds that devices did nothing, all devices together, by reason.
struct IdleSeconds {
  Seconds dependency{}; ///< rows of another call
  Seconds bytes{};      ///< rows or weights on their way
  Seconds device{};     ///< another device of the task's mesh
  Seconds version{};    ///< weights not there yet, or still read
  Seconds total() const {
    return dependency + bytes + device + version;
  }
};

struct StepReport {
  StepId step;
  std::uint32_t epoch = 0;
  Seconds duration{}; ///< from the previous commit to this one
  models::Sums sums;  ///< of all calls, merged in mesh order
  std::vector<TaskReport> tasks;
  std::map<std::string, double> carried; ///< values after the step
  std::uint64_t tokens = 0;              ///< of all samples
  std::uint64_t prompt_tokens = 0;
  std::uint32_t num_samples = 0;
  std::uint64_t squared_tokens = 0; ///< sum of L^2 over the samples
  std::uint32_t longest = 0;        ///< tokens of the longest sample
  std::uint64_t fetched_bytes = 0;
  std::uint64_t moved_bytes = 0;
  std::uint64_t wire_bytes = 0;        ///< moved between processes
  std::map<Rank, Seconds> busy;        ///< by device
  IdleSeconds idle;                    ///< before and inside its tasks
  std::uint64_t peak_memory_bytes = 0; ///< largest worker process so far
  Seconds save{}; ///< of the checkpoint written after the step
};

/// Notes how long the samples are now.
void count_tokens(StepReport& report, std::span<const std::uint32_t> tokens);
/// Of a task that ends now; the caller adds what its parts were busy.
TaskReport task_report(const plans::TaskTemplate& entry,
                       Clock::time_point started);

/// Adds a finished call or move to the report.
void add_call(StepReport& report, TaskReport task, const CallDone& done);
void add_move(StepReport& report, TaskReport task, const MoveDone& done);
void add_life(StepReport& report, TaskReport task, const LifeDone& done);

/// How a run ended.
struct RunEnd {
  enum class Kind { done, stopped, failed } kind = Kind::done;
  StepId next_step = {};       ///< first step that is not committed
  Failure failure = {};        ///< of failed runs: the first one
  std::string checkpoint = {}; ///< last one written; may be empty
};

} // namespace troupe::actors
