#include "net/child_pool.hpp"

#include "config/error.hpp"
#include "net/open_files.hpp"
#include "net/wake_event.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <thread>

extern char** environ; // NOLINT: POSIX's own

namespace troupe::net {

namespace {

/// argv, environment and paths as the kernel wants them, made before fork: the
/// child of a threaded process may not allocate.
struct ChildImage {
  explicit ChildImage(const ChildSpec& spec);

  std::vector<std::string> environment_texts;
  std::vector<char*> argv, environment;
  std::string working_folder, output_file;
  int input, output;
  std::vector<std::pair<int, rlimit>> limits;
};

ChildImage::ChildImage(const ChildSpec& spec)
  : working_folder(spec.working_folder),
    output_file(spec.output_file),
    input(spec.input),
    output(spec.output) {
  limits.emplace_back(RLIMIT_NOFILE, first_open_file_limit());
  for (const ChildLimit& limit : spec.limits) {
    rlimit most{};
    ::getrlimit(limit.resource, &most); // a hard limit below stays
    most.rlim_cur = std::min<rlim_t>(limit.most, most.rlim_max);
    limits.emplace_back(limit.resource, most);
  }
  for (const std::string& word : spec.argv)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  for (const auto& [name, value] : spec.environment)
    environment_texts.push_back(name + "=" + value);
  for (std::string& text : environment_texts)
    environment.push_back(text.data());
  for (char** old = environ; *old != nullptr; ++old) {
    const std::string_view text(*old);
    const bool replaced = std::any_of(
      spec.environment.begin(), spec.environment.end(),
      [&](const auto& pair) { return text.starts_with(pair.first + "="); });
    if (!replaced)
      environment.push_back(*old);
  }
  environment.push_back(nullptr);
}

/// What the child could not do, for the parent's message.
enum class ChildStep : int { folder, output, program };

struct ChildTrouble {
  ChildStep step;
  int error;
};

[[noreturn]] void child_fails(int report, ChildStep step) {
  const ChildTrouble trouble{step, errno};
  // If even this fails the parent sees the exit code.
  [[maybe_unused]] const ssize_t written
    = ::write(report, &trouble, sizeof(trouble));
  ::_exit(127);
}

/// Runs between fork and exec: async-signal-safe calls only.
[[noreturn]] void become_program(const ChildImage& image, pid_t parent,
                                 int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent)
    ::_exit(127); // the parent died in between
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP})
    ::signal(number, SIG_DFL);
  if (!image.working_folder.empty() && ::chdir(image.working_folder.c_str()))
    child_fails(report, ChildStep::folder);
  if (!image.output_file.empty()) {
    const int out
      = ::open(image.output_file.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644);
    if (out < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0)
      child_fails(report, ChildStep::output);
  }
  if (image.output >= 0)
    ::dup2(image.output, 1);
  const int input
    = image.input >= 0 ? image.input : ::open("/dev/null", O_RDONLY);
  if (input >= 0)
    ::dup2(input, 0);
  for (const auto& [resource, limit] : image.limits)
    ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
  // Sockets must not live on in a child (Asio's are not close-on-exec).
  constexpr unsigned close_on_exec = 1u << 2; // CLOSE_RANGE_CLOEXEC
  ::syscall(SYS_close_range, 3u, ~0u, close_on_exec);
  environ = const_cast<char**>(image.environment.data());
  ::execvp(image.argv[0], image.argv.data());
  child_fails(report, ChildStep::program);
}

std::string trouble_text(const ChildTrouble& trouble, const ChildImage& image) {
  const std::string reason = std::strerror(trouble.error);
  switch (trouble.step) {
  case ChildStep::folder:
    return "cannot enter " + image.working_folder + ": " + reason;
  case ChildStep::output:
    return "cannot write " + image.output_file + ": " + reason;
  default:
    return std::string("cannot execute ") + image.argv[0] + ": " + reason;
  }
}

/// The child's pid; throws FailureError when it did not get to exec.
pid_t fork_program(const ChildSpec& spec) {
  const auto fail = [&](const std::string& what) {
    throw FailureError({Errc::io, spec.name, what, ""});
  };
  if (spec.argv.empty())
    fail("no program to execute");
  const ChildImage image(spec);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0)
    fail(std::string("no pipe: ") + std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0)
    become_program(image, parent, report[1]);
  const int fork_error = errno;
  ::close(report[1]);
  ChildTrouble trouble{};
  ssize_t got = 0;
  if (pid > 0)
    do
      got = ::read(report[0], &trouble, sizeof(trouble));
    while (got < 0 && errno == EINTR);
  ::close(report[0]);
  if (pid < 0)
    fail(std::string("cannot fork: ") + std::strerror(fork_error));
  if (got == sizeof(trouble)) {
    ::waitpid(pid, nullptr, 0);
    fail(trouble_text(trouble, image));
  }
  return pid;
}

} // namespace

std::string to_string(const ChildExit& exit) {
  if (exit.signal == 0)
    return "exit code " + std::to_string(exit.code);
  const char* name = ::sigdescr_np(exit.signal);
  return "killed by signal " + std::to_string(exit.signal) + " ("
         + (name != nullptr ? name : "unknown") + ")";
}

struct ChildPool::Impl {
  struct Child {
    std::string name;
    std::uint32_t number = 0;
    int descriptor = -1; ///< pidfd
  };
  struct StartRequest {
    ChildSpec spec;
    std::promise<pid_t> started;
  };

  std::function<void(const ChildExit&)> on_exit;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<pid_t, Child> children;
  std::deque<std::shared_ptr<StartRequest>> starts;
  bool stopping = false;
  WakeEvent wake;
  std::thread watcher;

  void watch();
  void start_requested();
  void reap_ended(const std::vector<pollfd>& ready,
                  const std::vector<pid_t>& pids);
  void reap(pid_t pid);
};

/// Children are forked here because PR_SET_PDEATHSIG fires when the forking
/// *thread* ends, and this one lives as long as the pool.
void ChildPool::Impl::watch() {
  for (;;) {
    std::vector<pollfd> ready{{wake.descriptor(), POLLIN, 0}};
    std::vector<pid_t> pids;
    {
      std::lock_guard lock(mutex);
      if (stopping && children.empty() && starts.empty())
        return;
      for (const auto& [pid, child] : children) {
        ready.push_back({child.descriptor, POLLIN, 0});
        pids.push_back(pid);
      }
    }
    ::poll(ready.data(), ready.size(), -1);
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
      const pid_t pid = fork_program(request->spec);
      const int descriptor
        = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
      TROUPE_CHECK(descriptor >= 0, "this kernel has no pidfd_open");
      {
        std::lock_guard lock(mutex);
        children[pid] = {request->spec.name, request->spec.number, descriptor};
        if (stopping)
          ::kill(-pid, SIGKILL);
      }
      request->started.set_value(pid);
    } catch (...) {
      request->started.set_exception(std::current_exception());
    }
  }
}

void ChildPool::Impl::reap_ended(const std::vector<pollfd>& ready,
                                 const std::vector<pid_t>& pids) {
  for (std::size_t i = 0; i < pids.size(); ++i)
    if (ready[i + 1].revents != 0)
      reap(pids[i]);
}

void ChildPool::Impl::reap(pid_t pid) {
  // Grandchildren of its group go with it; before the wait the pid is ours.
  ::kill(-pid, SIGKILL);
  ChildExit exit;
  exit.pid = pid;
  {
    std::lock_guard lock(mutex); // nobody may signal a pid that was given back
    int status = 0;
    if (::waitpid(pid, &status, 0) != pid)
      return;
    if (WIFSIGNALED(status))
      exit.signal = WTERMSIG(status);
    else
      exit.code = WEXITSTATUS(status);
    auto child = children.extract(pid);
    exit.name = std::move(child.mapped().name);
    exit.number = child.mapped().number;
    ::close(child.mapped().descriptor);
  }
  if (on_exit)
    on_exit(exit);
  changed.notify_all();
}

ChildPool::ChildPool(std::function<void(const ChildExit&)> on_exit)
  : impl_(std::make_unique<Impl>()) {
  impl_->on_exit = std::move(on_exit);
  impl_->watcher = std::thread([impl = impl_.get()] { impl->watch(); });
}

ChildPool::~ChildPool() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  signal_all(SIGKILL);
  impl_->wake.ring();
  impl_->watcher.join();
}

pid_t ChildPool::start(ChildSpec spec) {
  auto request = std::make_shared<Impl::StartRequest>();
  request->spec = std::move(spec);
  std::future<pid_t> started = request->started.get_future();
  {
    std::lock_guard lock(impl_->mutex);
    impl_->starts.push_back(std::move(request));
  }
  if (std::this_thread::get_id() == impl_->watcher.get_id())
    impl_->start_requested();
  else
    impl_->wake.ring();
  return started.get();
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

bool ChildPool::wait_all(std::chrono::milliseconds limit) {
  std::unique_lock lock(impl_->mutex);
  return impl_->changed.wait_for(lock, limit,
                                 [&] { return impl_->children.empty(); });
}

void ChildPool::stop_all(std::chrono::milliseconds grace) {
  signal_all(SIGTERM);
  if (wait_all(grace))
    return;
  signal_all(SIGKILL);
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->children.empty(); });
}

} // namespace troupe::net
