#include "net/keeper/keeper.hpp"

#include "config/base/error.hpp"
#include "net/base/descriptor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

namespace troupe::net {

namespace {

[[noreturn]] void fail_keeper(const std::string& what) {
  throw FailureError({Errc::io, "keeper",
                      fmt::format("{}: {}", what, std::strerror(errno)), ""});
}

class Keeper {
public:
  explicit Keeper(Descriptor listener) : listener_(std::move(listener)) {}

  void run(std::chrono::milliseconds patience);

private:
  void accept_client();
  /// Returns false once the client is gone.
  bool serve(int client);
  void send_file(int client, const std::string& name);

  Descriptor listener_;
  std::vector<Descriptor> clients_;
  std::map<std::string, Descriptor> files_;
  bool ended_ = false;
};

void Keeper::run(std::chrono::milliseconds patience) {
  while (!ended_) {
    std::vector<pollfd> sources = {{listener_.get(), POLLIN, 0}};
    for (const Descriptor& client : clients_)
      sources.push_back({client.get(), POLLIN, 0});
    const int wait_ms
      = clients_.empty() ? static_cast<int>(patience.count()) : -1;
    const int ready = ::poll(sources.data(), sources.size(), wait_ms);
    if (ready == 0)
      return; // nobody came back
    if (ready < 0 && errno != EINTR)
      fail_keeper("cannot wait");
    for (std::size_t i = sources.size(); i-- > 1;)
      if (sources[i].revents != 0 && !serve(sources[i].fd))
        clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    if (sources[0].revents != 0)
      accept_client();
  }
}

void Keeper::accept_client() {
  Descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (client.get() >= 0 && is_of_this_user(client.get()))
    clients_.push_back(std::move(client));
}

bool Keeper::serve(int client) {
  std::array<char, kKeptNameBytes> name{};
  const auto size = ::recv(client, name.data(), name.size(), MSG_DONTWAIT);
  if (size < 0)
    return errno == EAGAIN || errno == EINTR;
  if (size == 0)
    return false;
  if (size == 1 && name[0] == '\0')
    ended_ = true;
  else
    send_file(client, std::string(name.data(), static_cast<std::size_t>(size)));
  return true;
}

void Keeper::send_file(int client, const std::string& name) {
  Descriptor& file = files_[name];
  if (file.get() < 0)
    file = Descriptor(::memfd_create("troupe-kept", MFD_CLOEXEC));
  char found = file.get() >= 0 ? 'y' : 'n'; // n: no descriptor is left
  iovec text{&found, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  if (file.get() >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = file.get();
    std::memcpy(CMSG_DATA(head), &number, sizeof(number));
  }
  // a client that is gone shows at the next poll
  [[maybe_unused]] const auto sent
    = ::sendmsg(client, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// Returns the socket that has the name; none if another process has it.
std::optional<Descriptor> listen_as(const std::string& name) {
  Descriptor listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto address = keeper_address(name);
  if (listener.get() < 0)
    fail_keeper("no socket");
  if (::bind(listener.get(), address.get(), address.size_bytes) != 0) {
    if (errno == EADDRINUSE)
      return std::nullopt;
    fail_keeper("no address");
  }
  if (::listen(listener.get(), SOMAXCONN) != 0)
    fail_keeper("cannot listen");
  return listener;
}

} // namespace

KeeperAddress keeper_address(const std::string& name) {
  const std::string path = "troupe-keeper-" + name;
  KeeperAddress address;
  TROUPE_CHECK(path.size() < sizeof(address.bytes.sun_path) - 1,
               "a keeper's name is too long: " + name);
  address.bytes.sun_family = AF_UNIX;
  path.copy(address.bytes.sun_path + 1, path.size()); // after a zero: abstract
  address.size_bytes
    = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  return address;
}

bool is_of_this_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
         && peer.uid == ::geteuid();
}

bool run_keeper(const std::string& name, std::chrono::milliseconds patience,
                const std::function<void()>& listening) {
  auto listener = listen_as(name);
  if (!listener)
    return false;
  listening();
  Keeper(std::move(*listener)).run(patience);
  return true;
}

} // namespace troupe::net
