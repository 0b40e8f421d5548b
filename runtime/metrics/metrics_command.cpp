#include "runtime/metrics/metrics_command.hpp"

#include "config/defaults.hpp"
#include "config/error.hpp"
#include "config/log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ; // POSIX declares it nowhere

namespace troupe::runtime {

namespace {

[[noreturn]] void command_fail(int error) {
  throw FailureError{
    {.code = Errc::io,
     .who = "metrics.command",
     .what = fmt::format("cannot start a program: {}", std::strerror(error)),
     .cause = ""}};
}

/// `sh -c command` with `input` as its standard input, in a group of its own:
/// Ctrl-C is for the run, which ends the command by closing its input.
pid_t spawn_shell(const std::string& command, int input) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  std::string words[] = {"sh", "-c", command};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t pid = -1;
  const int error
    = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes, argv, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0)
    command_fail(error);
  return pid;
}

/// Whether the process ended within the grace period.
bool ends_in_time(pid_t pid) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (handle < 0)
    return false;
  pollfd waiting{.fd = handle, .events = POLLIN, .revents = 0};
  const bool ended
    = ::poll(&waiting, 1,
             static_cast<int>(defaults::shutdown_grace.count()) * 1000)
      > 0;
  ::close(handle);
  return ended;
}

} // namespace

MetricsCommand::MetricsCommand(const std::string& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    command_fail(errno);
  input_ = ends[1];
  ::fcntl(input_, F_SETFL, O_NONBLOCK);
  pid_ = spawn_shell(command, ends[0]);
  ::close(ends[0]);
}

MetricsCommand::~MetricsCommand() {
  if (input_ >= 0)
    ::close(input_);
  if (!ends_in_time(pid_))
    ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  if (dropped_ > 0)
    log::runtime.warn(fmt::format("metrics.command missed {} lines, which it "
                                  "did not read in time",
                                  dropped_));
}

void MetricsCommand::write(std::string_view line) {
  if (input_ < 0)
    return;
  std::string text{line};
  text += '\n';
  // a line below PIPE_BUF goes in whole or not at all
  if (::write(input_, text.data(), text.size())
      == static_cast<ssize_t>(text.size()))
    return;
  if (errno == EAGAIN)
    ++dropped_;
  else
    give_up(errno);
}

void MetricsCommand::give_up(int error) {
  log::runtime.warn(
    fmt::format("metrics.command reads no more: {}", std::strerror(error)));
  ::close(input_);
  input_ = -1;
}

} // namespace troupe::runtime
