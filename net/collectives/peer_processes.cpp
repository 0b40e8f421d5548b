#include "net/collectives/peer_processes.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace troupe::net {

PeerProcess::PeerProcess(std::int32_t pid)
  : pid_(pid),
    pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  was_gone_ = pidfd_.get() < 0 && errno == ESRCH;
}

bool PeerProcess::ended() const {
  if (was_gone_)
    return true;
  if (pidfd_.get() < 0)
    return ::kill(pid_, 0) != 0 && errno == ESRCH;
  pollfd end{pidfd_.get(), POLLIN, 0};
  return ::poll(&end, 1, 0) > 0;
}

std::shared_ptr<const PeerProcess> PeerProcesses::find(std::int32_t pid) {
  const std::lock_guard lock{mutex_};
  auto& known = known_[pid];
  auto process = known.lock();
  if (!process)
    known = process = std::make_shared<const PeerProcess>(pid);
  return process;
}

} // namespace troupe::net
