#include "net/child_programs/child_start.hpp"

#include "config/base/error.hpp"
#include "net/base/open_files.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <ranges>
#include <string_view>

extern char** environ; // NOLINT: POSIX's own

namespace troupe::net {

namespace {

/// Says with whom a child ends.
enum class Tie : int { ends_with_parent, outlives_parent, not_a_child };

std::mutex passed_mutex;
std::vector<std::string> passed_variables; ///< guarded by the mutex

bool is_passed(const std::string& name) {
  const std::lock_guard lock(passed_mutex);
  return !is_secret_variable(name)
         || std::ranges::find(passed_variables, name) != passed_variables.end();
}

/// Returns our environment as a program gets it, with the spec's own.
std::vector<std::string> environment_of(const ChildSpec& spec) {
  std::vector<std::string> all;
  for (const auto& [name, value] : spec.environment)
    all.push_back(name + "=" + value);
  for (char** old = environ; *old != nullptr; ++old) {
    const std::string text(*old);
    const auto name = text.substr(0, text.find('='));
    const bool replaced = std::ranges::any_of(
      spec.environment, [&](const auto& pair) { return pair.first == name; });
    if (!replaced && (spec.trust == Trust::ours || is_passed(name)))
      all.push_back(text);
  }
  return all;
}

/// argv, environment and paths in the kernel's form, made before the child
/// exists: it has our memory, and must not change it.
struct ChildImage {
  ChildImage(const ChildSpec& spec, Tie tie);

  Tie tie;
  Trust trust;
  std::vector<std::string> environment_texts;
  std::vector<char*> argv, environment;
  std::string working_folder, output_file;
  int input, output;
  std::vector<std::pair<int, rlimit>> limits;
};

ChildImage::ChildImage(const ChildSpec& spec, Tie with)
  : tie(with),
    trust(spec.trust),
    working_folder(spec.working_folder),
    output_file(spec.output_file),
    input(spec.input),
    output(spec.output) {
  limits.emplace_back(RLIMIT_NOFILE, first_open_file_limit());
  for (const ChildLimit& limit : spec.limits) {
    rlimit most{};
    ::getrlimit(limit.resource, &most); // a lower hard limit stays
    most.rlim_cur = most.rlim_max = std::min<rlim_t>(limit.most, most.rlim_max);
    limits.emplace_back(limit.resource, most);
  }
  for (const std::string& word : spec.argv)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  if (tie != Tie::outlives_parent)
    environment_texts = environment_of(spec);
  for (std::string& text : environment_texts)
    environment.push_back(text.data());
  environment.push_back(nullptr);
}

/// Descriptors by which a child tells its parent that it failed, and the guard
/// that it exists.
struct ChildReports {
  int failure;
  int guard;
  pid_t parent;
};

/// Step at which the child failed, for the parent's message.
enum class ChildStep : int { folder, output, program };

struct ChildError {
  ChildStep step;
  int error;
};

// -- between vfork and exec: only async-signal-safe calls, and no change of
// -- memory outside these functions

[[noreturn]] void child_fails(const ChildReports& reports, ChildStep step) {
  const ChildError error{step, errno};
  // if even this fails, the parent sees the exit code
  [[maybe_unused]] const ssize_t written
    = ::write(reports.failure, &error, sizeof(error));
  ::_exit(127);
}

/// Writes "+PID\n" to the guard.
void announce(int guard) {
  std::array<char, 16> line{};
  std::size_t begin = line.size();
  line[--begin] = '\n';
  for (pid_t rest = ::getpid(); rest > 0; rest /= 10)
    line[--begin] = static_cast<char>('0' + rest % 10);
  line[--begin] = '+';
  [[maybe_unused]] const auto sent
    = ::send(guard, &line[begin], line.size() - begin, MSG_NOSIGNAL);
}

/// Ties a child to its parent, or replaces it by a child of its own that the
/// parent does not know.
void tie_child(Tie tie, const ChildReports& reports) {
  if (tie == Tie::not_a_child) {
    const pid_t pid = ::_Fork();
    if (pid < 0)
      child_fails(reports, ChildStep::program);
    if (pid > 0)
      ::_exit(0);
  }
  if (tie != Tie::ends_with_parent) {
    ::setsid();
    return;
  }
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != reports.parent)
    ::_exit(127); // the parent died in between
  if (reports.guard >= 0)
    announce(reports.guard);
}

/// Restores the default of every signal: our handlers would run in our memory.
void forget_handlers() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    const bool ours = ::sigaction(number, nullptr, &action) == 0
                      && action.sa_handler != SIG_DFL
                      && action.sa_handler != SIG_IGN;
    if (ours || number == SIGPIPE || number == SIGINT || number == SIGTERM
        || number == SIGHUP)
      ::signal(number, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void place_child(const ChildImage& image, const ChildReports& reports) {
  if (!image.working_folder.empty() && ::chdir(image.working_folder.c_str()))
    child_fails(reports, ChildStep::folder);
  if (!image.output_file.empty()) {
    const int out
      = ::open(image.output_file.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644);
    if (out < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0)
      child_fails(reports, ChildStep::output);
  }
  if (image.output >= 0)
    ::dup2(image.output, 1);
  const int input
    = image.input >= 0 ? image.input : ::open("/dev/null", O_RDONLY);
  if (input >= 0)
    ::dup2(input, 0);
}

[[noreturn]] void become_program(const ChildImage& image,
                                 const ChildReports& reports) {
  tie_child(image.tie, reports);
  forget_handlers();
  place_child(image, reports);
  for (const auto& [resource, limit] : image.limits)
    ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
  if (image.trust == Trust::users)
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // a child must not inherit sockets (Asio's are not close-on-exec)
  constexpr unsigned close_on_exec = 1u << 2; // CLOSE_RANGE_CLOEXEC
  ::syscall(SYS_close_range, 3u, ~0u, close_on_exec);
  ::execvpe(image.argv[0], image.argv.data(), image.environment.data());
  child_fails(reports, ChildStep::program);
}

/// Returns in the parent once the child is the program, or has ended. A frame
/// of its own: nothing here may be in use on both sides.
pid_t vfork_program(const ChildImage& image, const ChildReports& reports) {
  const pid_t pid = ::vfork();
  if (pid == 0)
    become_program(image, reports);
  return pid;
}

// ----------------------------------------------------------------------------

std::string error_text(const ChildError& error, const ChildImage& image) {
  const std::string reason = std::strerror(error.error);
  switch (error.step) {
  case ChildStep::folder:
    return "cannot enter " + image.working_folder + ": " + reason;
  case ChildStep::output:
    return "cannot write " + image.output_file + ": " + reason;
  default:
    return std::string("cannot execute ") + image.argv[0] + ": " + reason;
  }
}

/// Returns the child's pid. Throws FailureError if it did not reach exec.
pid_t start_program(const ChildSpec& spec, Tie tie, int guard) {
  const auto fail = [&](const std::string& what) {
    throw FailureError({Errc::io, spec.name, what, ""});
  };
  if (spec.argv.empty())
    fail("no program to execute");
  const ChildImage image(spec, tie);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0)
    fail(std::string("no pipe: ") + std::strerror(errno));
  const Descriptor reader(report[0]);
  Descriptor writer(report[1]);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before); // no handler in the child
  const pid_t pid = vfork_program(image, {writer.get(), guard, ::getpid()});
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  writer = Descriptor();
  if (pid < 0)
    fail(std::string("cannot fork: ") + std::strerror(fork_error));
  ChildError error{};
  ssize_t got = 0;
  do
    got = ::read(reader.get(), &error, sizeof(error));
  while (got < 0 && errno == EINTR);
  if (got == sizeof(error)) {
    ::waitpid(pid, nullptr, 0);
    fail(error_text(error, image));
  }
  return pid;
}

} // namespace

Descriptor readable_text(const std::string& text) {
  Descriptor memory(::memfd_create("input", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(text.size());
  if (memory.get() < 0
      || ::pwrite(memory.get(), text.data(), text.size(), 0) != size)
    throw FailureError({Errc::io, "input of a program",
                        std::string("no memory: ") + std::strerror(errno), ""});
  return memory;
}

bool is_secret_variable(const std::string& name) {
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  constexpr std::array<std::string_view, 4> words{"KEY", "TOKEN", "SECRET",
                                                  "PASSWORD"};
  return std::ranges::any_of(words, [&](std::string_view word) {
    return upper.find(word) != std::string::npos;
  });
}

void let_variables_through(
  const std::map<std::string, std::string>& variables) {
  const std::lock_guard lock(passed_mutex);
  const auto names = variables | std::views::keys;
  passed_variables.assign(names.begin(), names.end());
}

void start_detached(const ChildSpec& spec) {
  ::waitpid(start_program(spec, Tie::not_a_child, -1), nullptr, 0);
}

pid_t start_child(const ChildSpec& spec, int guard) {
  return start_program(spec, Tie::ends_with_parent, guard);
}

pid_t start_guard(const ChildSpec& spec) {
  return start_program(spec, Tie::outlives_parent, -1);
}

bool wait_for_killed(pid_t pid, std::chrono::milliseconds limit) {
  const Descriptor child(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd end{child.get(), POLLIN, 0};
  ::poll(&end, 1, static_cast<int>(limit.count()));
  return ::waitpid(pid, nullptr, WNOHANG) == pid;
}

} // namespace troupe::net
