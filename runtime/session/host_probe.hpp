// Asks the hosts that a run does without whether they can be reached again,
// over ssh and one at a time; the run then continues on all of them.
#pragma once

#include "net/child_programs/child_pool.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::runtime {

class HostProbe {
public:
  using Time = std::chrono::steady_clock::time_point;

  /// `on_all_back` is called on a watching thread, when all of `hosts` replied
  /// one after the other.
  HostProbe(std::vector<std::string> hosts, std::function<void()> on_all_back);
  ~HostProbe();
  HostProbe(HostProbe&&) noexcept;

  /// Asks the next host, if it is time to.
  void look(Time now);

private:
  struct State;
  std::unique_ptr<State> state_; ///< null: no host is lost
};

} // namespace troupe::runtime
