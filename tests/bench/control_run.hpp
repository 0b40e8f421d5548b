// Master actor, call actors and two worker processes as in a run, over a graph
// of empty tasks: the cost of the control plane where nothing is computed. A
// task is an inference call on no samples; the master sends a request to its
// call actor, which tells the worker's shard to fetch and then to run, and the
// reply returns.
#pragma once

#include "card_folder.hpp"

#include <memory>

namespace troupe::bench {

class ControlRun {
public:
  /// Starts both workers with the card's models and waits until all is loaded.
  /// `encrypted`: as between hosts.
  ControlRun(const CardFolder& folder, bool encrypted);
  ~ControlRun();
  ControlRun(const ControlRun&) = delete;
  ControlRun& operator=(const ControlRun&) = delete;

  /// Returns the seconds of each of `steps` steps of `tasks` empty tasks, which
  /// go to the two workers in turn. `chained`: each task waits for the one
  /// before it, on the other worker; else only for its own device.
  std::vector<double> run(std::uint32_t tasks, std::uint32_t steps,
                          bool chained);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::bench
