#include "runtime/session/host_probe.hpp"

#include "config/base/defaults.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <utility>

namespace troupe::runtime {

struct HostProbe::State {
  State(std::vector<std::string> lost, std::function<void()> back)
    : hosts(std::move(lost)),
      on_all_back(std::move(back)) {}

  void ask();
  void ended(const net::ChildExit& exit);

  std::vector<std::string> hosts;
  std::function<void()> on_all_back;
  Time next = std::chrono::steady_clock::now() + defaults::probe_period;
  std::atomic<std::size_t> reached = 0; ///< in a row
  std::atomic<bool> is_asking = false;
  net::ChildPool pool{[this](const net::ChildExit& exit) { ended(exit); }};
};

void HostProbe::State::ask() {
  net::ChildSpec ssh;
  ssh.name = "probe of " + hosts[reached];
  ssh.argv = {"ssh", "-o", "BatchMode=yes", hosts[reached], "exit 0"};
  ssh.output_file = "/dev/null";
  pool.start(std::move(ssh));
}

void HostProbe::State::ended(const net::ChildExit& exit) {
  const bool is_back = exit.signal == 0 && exit.code == 0;
  reached = is_back ? reached + 1 : 0;
  const bool all = reached == hosts.size();
  reached = all ? 0 : reached.load();
  is_asking = false;
  if (all)
    on_all_back();
}

HostProbe::HostProbe(std::vector<std::string> hosts,
                     std::function<void()> on_all_back)
  : state_(hosts.empty() ? nullptr
                         : std::make_unique<State>(std::move(hosts),
                                                   std::move(on_all_back))) {}

HostProbe::~HostProbe() {
  if (!state_)
    return;
  state_->pool.signal_all(SIGKILL);
  state_->pool.wait_all(defaults::kill_workers_within);
}

HostProbe::HostProbe(HostProbe&&) noexcept = default;

void HostProbe::look(Time now) {
  if (!state_ || now < state_->next || state_->is_asking.exchange(true))
    return;
  state_->next = now + defaults::probe_period;
  try {
    state_->ask();
  } catch (const FailureError& error) {
    log::runtime.warn(to_string(error.failure()));
    state_->is_asking = false;
  }
}

} // namespace troupe::runtime
