#include "net/child_programs/child_pool.hpp"

#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "net/base/defaults.hpp"
#include "net/base/wake_event.hpp"
#include "net/child_programs/child_guard.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace troupe::net {

std::string to_string(const ChildExit& exit) {
  if (exit.signal == 0)
    return "exit code " + std::to_string(exit.code);
  const char* name = ::sigdescr_np(exit.signal);
  return "killed by signal " + std::to_string(exit.signal) + " ("
         + (name != nullptr ? name : "unknown") + ")";
}

/// Shared with the watching thread, which outlives the pool if a child does.
struct ChildPool::Impl {
  struct Child {
    std::string name;
    std::uint32_t number = 0;
    int descriptor = -1;    ///< pidfd
    bool has_ended = false; ///< and cannot be reaped yet
  };
  struct StartRequest {
    ChildSpec spec;
    std::promise<pid_t> started;
    bool given_up = false; ///< guarded by the mutex
  };

  std::mutex on_exit_mutex;                      ///< before `mutex`
  std::function<void(const ChildExit&)> on_exit; ///< empty: the pool is gone
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<pid_t, Child> children;
  std::deque<std::shared_ptr<StartRequest>> starts;
  bool stopping = false;
  bool reporting = false; ///< `on_exit` of a child that is left out already
  bool ended = false;     ///< the watching thread is at its end
  WakeEvent wake;
  std::optional<ChildGuard> guard; ///< of programs of the user's; only on the
                                   ///< watcher
  std::thread watcher;

  void watch();
  void start_requested();
  void add(pid_t pid, const StartRequest& request);
  int guard_of(const ChildSpec& spec);
  void reap_ended(const std::vector<pollfd>& ready,
                  const std::vector<pid_t>& pids);
  void reap(pid_t pid);
  std::optional<ChildExit> take_ended(pid_t pid);
  std::string left() const;
};

/// Forks the children on this thread because PR_SET_PDEATHSIG fires when the
/// forking *thread* ends, and this one lives as long as the pool.
void ChildPool::Impl::watch() {
  for (;;) {
    std::vector<pollfd> ready{{wake.descriptor(), POLLIN, 0}};
    std::vector<pid_t> pids;
    bool looks_again = false;
    {
      std::lock_guard lock(mutex);
      ended = stopping && children.empty() && starts.empty();
      if (ended)
        return changed.notify_all();
      for (const auto& [pid, child] : children) {
        ready.push_back({child.has_ended ? -1 : child.descriptor, POLLIN, 0});
        pids.push_back(pid);
        looks_again = looks_again || child.has_ended;
      }
    }
    ::poll(ready.data(), ready.size(),
           looks_again ? static_cast<int>(kLivenessSlice.count()) : -1);
    wake.clear();
    start_requested();
    reap_ended(ready, pids);
  }
}

void ChildPool::Impl::start_requested() {
  for (;;) {
    std::shared_ptr<StartRequest> request;
    {
      std::lock_guard lock(mutex);
      if (starts.empty())
        return;
      request = std::move(starts.front());
      starts.pop_front();
    }
    try {
      const pid_t pid = start_child(request->spec, guard_of(request->spec));
      add(pid, *request);
      request->started.set_value(pid);
    } catch (...) {
      request->started.set_exception(std::current_exception());
    }
  }
}

void ChildPool::Impl::add(pid_t pid, const StartRequest& request) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  TROUPE_CHECK(descriptor >= 0, "this kernel has no pidfd_open");
  const std::lock_guard lock(mutex);
  children[pid] = {request.spec.name, request.spec.number, descriptor};
  if (stopping || request.given_up)
    ::kill(-pid, SIGKILL);
}

/// Returns the socket of the guard for a program of the user's, else -1.
int ChildPool::Impl::guard_of(const ChildSpec& spec) {
  if (spec.trust == Trust::ours)
    return -1;
  if (!guard)
    guard.emplace();
  return guard->socket();
}

void ChildPool::Impl::reap_ended(const std::vector<pollfd>& ready,
                                 const std::vector<pid_t>& pids) {
  for (std::size_t i = 0; i < pids.size(); ++i)
    if (ready[i + 1].revents != 0 || ready[i + 1].fd < 0)
      reap(pids[i]);
}

/// Takes a child that has ended; nothing while the kernel does not let it go,
/// which can take as long as another process traces it.
std::optional<ChildExit> ChildPool::Impl::take_ended(pid_t pid) {
  std::lock_guard lock(mutex); // a released pid must not be signaled
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid) {
    children.at(pid).has_ended = true;
    return std::nullopt;
  }
  ChildExit exit;
  exit.pid = pid;
  if (WIFSIGNALED(status))
    exit.signal = WTERMSIG(status);
  else
    exit.code = WEXITSTATUS(status);
  auto child = children.extract(pid);
  exit.name = std::move(child.mapped().name);
  exit.number = child.mapped().number;
  ::close(child.mapped().descriptor);
  reporting = true;
  return exit;
}

void ChildPool::Impl::reap(pid_t pid) {
  // also kills grandchildren in its group; before the wait the pid is still
  // ours
  ::kill(-pid, SIGKILL);
  const auto exit = take_ended(pid);
  if (!exit)
    return;
  if (guard)
    guard->forget(pid);
  {
    const std::lock_guard lock(on_exit_mutex);
    if (on_exit)
      on_exit(*exit);
  }
  const std::lock_guard lock(mutex);
  reporting = false;
  changed.notify_all();
}

/// Names the children, for a warning.
std::string ChildPool::Impl::left() const {
  std::string names;
  const std::lock_guard lock(mutex);
  for (const auto& [pid, child] : children)
    names += fmt::format("{}{} (pid {})", names.empty() ? "" : ", ", child.name,
                         pid);
  for (const auto& request : starts)
    names += fmt::format("{}{} (not started)", names.empty() ? "" : ", ",
                         request->spec.name);
  return names.empty() ? "a program that is being started" : names;
}

// ----------------------------------------------------------------------------

namespace {

bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text); // PID (NAME) STATE ..
  const auto name_end = text.rfind(')');
  return name_end != text.npos && text.substr(name_end).starts_with(") T");
}

void warn_of_left(const std::string& names) {
  log::net.warn(fmt::format("goes on without the end of {}: killed {} s ago",
                            names, kKilledEndsWithin.count()));
}

} // namespace

ChildPool::ChildPool(std::function<void(const ChildExit&)> on_exit)
  : impl_(std::make_shared<Impl>()) {
  impl_->on_exit = std::move(on_exit);
  std::signal(SIGPIPE, SIG_IGN);
  impl_->watcher = std::thread([impl = impl_] { impl->watch(); });
}

ChildPool::~ChildPool() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  signal_all(SIGKILL);
  impl_->wake.ring();
  std::unique_lock lock(impl_->mutex);
  const bool ended = impl_->changed.wait_for(lock, kKilledEndsWithin,
                                             [&] { return impl_->ended; });
  lock.unlock();
  if (ended) {
    impl_->watcher.join();
    return;
  }
  warn_of_left(impl_->left());
  const std::lock_guard silent(impl_->on_exit_mutex);
  impl_->on_exit = nullptr;
  impl_->watcher.detach();
}

pid_t ChildPool::start(ChildSpec spec) {
  auto request = std::make_shared<Impl::StartRequest>();
  request->spec = std::move(spec);
  std::future<pid_t> started = request->started.get_future();
  {
    std::lock_guard lock(impl_->mutex);
    impl_->starts.push_back(request);
  }
  if (std::this_thread::get_id() == impl_->watcher.get_id())
    impl_->start_requested();
  else
    impl_->wake.ring();
  if (started.wait_for(kProgramStartsWithin) == std::future_status::ready)
    return started.get();
  const std::lock_guard lock(impl_->mutex);
  request->given_up = true; // killed if it starts after all
  throw FailureError(
    {Errc::io, request->spec.name,
     fmt::format("{} did not start within {} s: does its file system answer?",
                 request->spec.argv.front(), kProgramStartsWithin.count()),
     ""});
}

bool ChildPool::signal(pid_t pid, int signal_number) {
  std::lock_guard lock(impl_->mutex);
  return impl_->children.contains(pid) && ::kill(-pid, signal_number) == 0;
}

void ChildPool::signal_all(int signal_number) {
  std::lock_guard lock(impl_->mutex);
  for (const auto& [pid, child] : impl_->children)
    ::kill(-pid, signal_number);
}

std::vector<pid_t> ChildPool::running() const {
  std::lock_guard lock(impl_->mutex);
  std::vector<pid_t> pids;
  for (const auto& [pid, child] : impl_->children)
    pids.push_back(pid);
  return pids;
}

std::vector<std::uint32_t> ChildPool::stopped() const {
  std::lock_guard lock(impl_->mutex);
  std::vector<std::uint32_t> numbers;
  for (const auto& [pid, child] : impl_->children)
    if (is_stopped(pid))
      numbers.push_back(child.number);
  return numbers;
}

bool ChildPool::wait_all(std::chrono::milliseconds limit) {
  std::unique_lock lock(impl_->mutex);
  return impl_->changed.wait_for(
    lock, limit, [&] { return impl_->children.empty() && !impl_->reporting; });
}

void ChildPool::stop_all(std::chrono::milliseconds grace) {
  signal_all(SIGTERM);
  if (wait_all(grace))
    return;
  signal_all(SIGKILL);
  if (!wait_all(kKilledEndsWithin))
    warn_of_left(impl_->left());
}

} // namespace troupe::net
