#include "net/collectives/group_sockets.hpp"

#include "config/base/awake_clock.hpp"
#include "config/base/defaults.hpp"
#include "net/base/wire.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <variant>

namespace troupe::net {

namespace {

using LaneClock = AwakeClock;

bool lane_has_work(const Lane& lane) {
  return lane.done < (lane.sending ? *lane.available : lane.end);
}

/// Moves what can be moved without waiting; returns the number of bytes.
std::size_t move_bytes(Lane& lane) {
  std::size_t moved = 0;
  try {
    if (lane.sending) {
      moved
        = lane.socket->send(lane.data + lane.done, *lane.available - lane.done);
    } else {
      const auto [to, most]
        = lane.next ? lane.next()
                    : std::pair(lane.data + lane.done, lane.end - lane.done);
      moved = lane.socket->receive(to, most);
    }
  } catch (const SocketLost& lost) {
    throw FailureError({Errc::peer_lost, lane.peer, lost.what(), ""});
  }
  lane.done += moved;
  if (!lane.sending && lane.received && moved != 0)
    lane.received(moved);
  return moved;
}

std::string waited_for(const std::vector<Lane*>& lanes) {
  std::string text;
  for (const Lane* lane : lanes)
    if (lane->done < lane->end)
      text += (text.empty() ? "" : ", ") + lane->peer;
  return text;
}

/// Waits until one of `sockets` is ready; returns false if `deadline` passed
/// first. Throws FailureError if the abort event fired.
bool any_ready(std::vector<pollfd> sockets, const LaneWaits& waits,
               LaneClock::time_point deadline) {
  sockets.push_back({waits.abort_event, POLLIN, 0});
  for (;;) { // poll also counts the time in which this process was stopped
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      deadline - LaneClock::now());
    const int count
      = ::poll(sockets.data(), sockets.size(),
               static_cast<int>(std::max(left, left.zero()).count()));
    if (sockets.back().revents != 0)
      throw FailureError({Errc::aborted, "group", "aborted", ""});
    if (count != 0 || left <= left.zero())
      return count != 0;
  }
}

[[noreturn]] void nothing_moved(const std::string& peer,
                                const LaneWaits& waits) {
  throw FailureError({Errc::deadline, peer,
                      "no byte moved for "
                        + std::to_string(waits.progress_deadline.count())
                        + " ms",
                      ""});
}

/// Waits until a lane with work is ready. A session after its handshake sends
/// pending records and reads available ones in the direction that is requested.
void poll_lanes(const std::vector<Lane*>& lanes, const LaneWaits& waits,
                LaneClock::time_point deadline) {
  std::vector<pollfd> sockets;
  for (const Lane* lane : lanes)
    if (lane_has_work(*lane))
      sockets.push_back({lane->socket->number(),
                         static_cast<short>(lane->sending ? POLLOUT : POLLIN),
                         0});
  if (!any_ready(std::move(sockets), waits, deadline))
    nothing_moved(waited_for(lanes), waits);
}

struct AddressList {
  explicit AddressList(const GroupDial& dial) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    const int error = ::getaddrinfo(
      dial.host.c_str(), std::to_string(dial.port).c_str(), &hints, &first);
    if (error != 0)
      throw FailureError(
        {Errc::peer_lost, dial.peer,
         "cannot find " + dial.host + ": " + ::gai_strerror(error), ""});
  }
  ~AddressList() {
    ::freeaddrinfo(first);
  }
  AddressList(const AddressList&) = delete;
  AddressList& operator=(const AddressList&) = delete;
  addrinfo* first = nullptr;
};

/// Returns 0 or the error number.
int connect_one(int socket, const addrinfo& address, const LaneWaits& waits) {
  if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  const auto limit = std::min<std::chrono::milliseconds>(
    waits.progress_deadline, defaults::connect_within);
  if (!any_ready({{socket, POLLOUT, 0}}, waits, LaneClock::now() + limit))
    return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

Descriptor connect_any(const GroupDial& dial, const LaneWaits& waits) {
  const AddressList addresses(dial);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = addresses.first; at != nullptr; at = at->ai_next) {
    Descriptor socket(
      ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket.get() < 0) {
      error = errno;
      continue;
    }
    error = connect_one(socket.get(), *at, waits);
    if (error != 0)
      continue;
    const int yes = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    return socket;
  }
  throw FailureError({Errc::peer_lost, dial.peer,
                      std::string("cannot connect: ") + std::strerror(error),
                      ""});
}

void receive_exactly(PeerSocket& socket, const std::string& peer,
                     std::span<std::byte> into, const LaneWaits& waits) {
  Lane lane{&socket, peer, false, into.data(), into.size(), nullptr, 0, {}, {}};
  run_lanes({&lane}, waits);
}

} // namespace

std::unique_ptr<TlsSession> secure_dialed(int socket, const TlsContext& context,
                                          const std::string& peer,
                                          const LaneWaits& waits) {
  using Next = TlsSession::Next;
  auto session
    = std::make_unique<TlsSession>(context, socket, TlsSession::Role::connects);
  const auto deadline = LaneClock::now() + waits.progress_deadline;
  for (Next next = session->shake_hands(); next != Next::more;
       next = session->shake_hands()) {
    const bool ended = next == Next::ended;
    if (ended || next == Next::broken)
      throw FailureError(
        {ended || session->lost_socket() ? Errc::peer_lost : Errc::refused,
         peer, "the TLS handshake failed",
         ended ? "the peer closed the connection" : session->why()});
    const short event = next == Next::readable ? POLLIN : POLLOUT;
    if (!any_ready({{socket, event, 0}}, waits, deadline))
      nothing_moved(peer, waits);
  }
  return session;
}

void run_lanes(std::vector<Lane*> lanes, const LaneWaits& waits) {
  auto last_progress = LaneClock::now();
  for (;;) {
    std::size_t moved = 0;
    bool work_left = false;
    for (Lane* lane : lanes) {
      if (lane_has_work(*lane))
        moved += move_bytes(*lane);
      work_left |= lane->done < lane->end;
    }
    if (!work_left)
      return;
    if (moved != 0)
      last_progress = LaneClock::now();
    else
      poll_lanes(lanes, waits, last_progress + waits.progress_deadline);
  }
}

PeerSocket dial_group(const GroupDial& dial, const LaneWaits& waits) {
  Descriptor plain = connect_any(dial, waits);
  auto session = dial.tls
                   ? secure_dialed(plain.get(), *dial.tls, dial.peer, waits)
                   : nullptr;
  PeerSocket socket(std::move(plain), std::move(session));
  std::string hello = encode_frame(
    Hello{kWireProtocol, dial.token, dial.self, dial.group, dial.rank}, 0);
  const std::size_t size = hello.size();
  Lane out{&socket, dial.peer, true, reinterpret_cast<std::byte*>(hello.data()),
           size,    &size,     0,    {},
           {}};
  run_lanes({&out}, waits);
  std::array<std::byte, kPreludeBytes> prelude_bytes{};
  receive_exactly(socket, dial.peer, prelude_bytes, waits);
  try {
    constexpr std::uint32_t most_header_bytes = 16 << 10;
    const Prelude prelude
      = decode_prelude(prelude_bytes, {most_header_bytes, 0});
    std::vector<std::byte> header(prelude.header_bytes);
    receive_exactly(socket, dial.peer, header, waits);
    const Message reply = decode_header(header);
    if (const auto* refusal = std::get_if<Refusal>(&reply))
      throw FailureError(refusal->failure);
    if (!std::holds_alternative<Welcome>(reply))
      throw WireError("no welcome");
  } catch (const WireError& error) {
    throw FailureError({Errc::refused, dial.peer, error.what(), ""});
  }
  return socket;
}

} // namespace troupe::net
