#include "net/keeper/keeper_client.hpp"

#include "config/base/error.hpp"
#include "net/child_programs/child_start.hpp"
#include "net/keeper/keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace troupe::net {

namespace {

constexpr int kStartMilliseconds = 10'000;
constexpr int kReplySeconds = 10; ///< of one that is stopped
constexpr int kStarts = 3; ///< another process may start or end one meanwhile

FailureError keeper_failure(Errc code, const std::string& what) {
  return FailureError({code, "keeper of this host", what, ""});
}

/// Receives the reply to a request: the descriptor of a file; -1: none.
int receive_file(int socket) {
  char found = 0;
  iovec text{&found, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0)
    return -1;
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS)
    return -1;
  int number = -1;
  std::memcpy(&number, CMSG_DATA(head), sizeof(number));
  return number;
}

} // namespace

bool KeeperClient::connect() {
  if (socket_.get() >= 0)
    return true;
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto address = keeper_address(name_);
  if (::connect(socket.get(), address.get(), address.size_bytes) != 0
      || !is_of_this_user(socket.get())) // a stranger can take the name
    return false;
  const timeval limit{kReplySeconds, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  socket_ = std::move(socket);
  return true;
}

/// Starts a keeper and waits until it listens, or has ended because there is
/// one.
void KeeperClient::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw keeper_failure(Errc::io,
                         fmt::format("no pipe: {}", std::strerror(errno)));
  const Descriptor read_end(ends[0]);
  {
    const Descriptor write_end(ends[1]);
    ChildSpec spec;
    spec.name = "keeper";
    spec.argv = program_;
    spec.output = write_end.get();
    start_detached(spec);
  }
  pollfd source{read_end.get(), POLLIN, 0};
  if (::poll(&source, 1, kStartMilliseconds) <= 0)
    throw keeper_failure(Errc::deadline, "it did not start");
}

bool KeeperClient::connect_or_start() {
  for (int i = 0; i < kStarts && !connect(); ++i)
    start();
  return connect();
}

void KeeperClient::start_if_none() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    connect_or_start();
  } catch (const std::exception&) { // the first snapshot says what is wrong
  }
}

bool KeeperClient::find() {
  const std::lock_guard lock(mutex_);
  return connect();
}

Descriptor KeeperClient::open(const std::string& file) {
  TROUPE_CHECK(!file.empty() && file.size() <= kKeptNameBytes,
               "no name for a file: " + file);
  const std::lock_guard lock(mutex_);
  const bool was_connected = socket_.get() >= 0;
  auto found = request(file);
  if (!found && was_connected) // it ended since; another one may be started
    found = request(file);
  if (!found)
    throw keeper_failure(Errc::peer_lost, "it gives no file");
  return std::move(*found);
}

/// Returns the file; nothing if the keeper does not give it.
std::optional<Descriptor> KeeperClient::request(const std::string& file) {
  if (!connect_or_start())
    throw keeper_failure(Errc::io, "it cannot be reached, or another user has "
                                   "its name");
  const bool sent
    = ::send(socket_.get(), file.data(), file.size(), MSG_NOSIGNAL) >= 0;
  const int number = sent ? receive_file(socket_.get()) : -1;
  if (number >= 0)
    return Descriptor(number);
  socket_ = {};
  return std::nullopt;
}

void KeeperClient::end() {
  const std::lock_guard lock(mutex_);
  if (!connect())
    return;
  const char nothing = 0;
  [[maybe_unused]] const auto sent
    = ::send(socket_.get(), &nothing, 1, MSG_NOSIGNAL);
  socket_ = {};
}

} // namespace troupe::net
