#include "net/child_programs/child_guard.hpp"

#include "config/base/error.hpp"
#include "net/base/defaults.hpp"
#include "net/child_programs/child_start.hpp"

#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace troupe::net {

namespace {

/// Keeps the groups that were announced and have not ended; built-in commands
/// only.
constexpr const char* guard_script = R"(
trap '' HUP INT TERM
groups=' '
while read -r word; do
  group=${word#?}
  case $word in
  +*) groups="$groups$group " ;;
  -*) groups="${groups%% "$group" *} ${groups#* "$group" }" ;;
  esac
done
for group in $groups; do
  kill -s KILL -- "-$group"
done)";

} // namespace

ChildGuard::ChildGuard() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw FailureError({Errc::io, "guard of programs",
                        std::string("no socket: ") + std::strerror(errno), ""});
  socket_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  ChildSpec shell;
  shell.name = "guard of programs";
  shell.argv = {"/bin/sh", "-c", guard_script, "troupe-guard"};
  shell.input = theirs.get();
  shell.output_file = "/dev/null";
  pid_ = start_guard(shell);
}

ChildGuard::~ChildGuard() {
  ::kill(pid_, SIGKILL);
  wait_for_killed(pid_, kKilledEndsWithin);
}

void ChildGuard::forget(pid_t group) const {
  const auto line = "-" + std::to_string(group) + "\n";
  // if it fails, the guard was killed, and guards nothing
  [[maybe_unused]] const auto sent
    = ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
}

} // namespace troupe::net
