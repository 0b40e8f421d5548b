#include "actors/membership/secure_middleman.hpp"

#include "config/base/defaults.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "net/base/descriptor.hpp"
#include "net/collectives/group_sockets.hpp"
#include "net/transport/pending_connections.hpp"

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/interfaces.hpp>
#include <caf/io/network/stream_impl.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::actors {

namespace {

namespace network = caf::io::network;
using network::native_socket;
using network::rw_state;
using Next = net::TlsSession::Next;

/// TLS for CAF's streams. The accepting end's handshake proceeds as bytes
/// arrive: what CAF writes before it ends is buffered here (one short frame),
/// or CAF would try to write it in a busy loop.
class TlsPolicy {
public:
  /// `entry`: of a connection that was accepted, until it has greeted.
  TlsPolicy(std::unique_ptr<net::TlsSession> session, bool greeted,
            net::PendingConnections::Entry entry = {})
    : session_(std::move(session)),
      entry_(std::move(entry)),
      greeted_(greeted) {}

  rw_state read_some(std::size_t& result, native_socket socket, void* into,
                     std::size_t most) {
    result = 0;
    if (!greeted_ && !greet(socket))
      return rw_state::failure;
    if (!greeted_ || most == 0)
      return rw_state::success;
    const auto moved = session_->read({static_cast<std::byte*>(into), most});
    all_read_ = moved.next != Next::more;
    result = moved.bytes;
    return state_of(moved.next);
  }

  rw_state write_some(std::size_t& result, native_socket, const void* data,
                      std::size_t size) {
    result = 0;
    if (size == 0)
      return rw_state::indeterminate;
    const std::span bytes{static_cast<const std::byte*>(data), size};
    if (!greeted_) {
      early_.insert(early_.end(), bytes.begin(), bytes.end());
      result = size;
      return rw_state::success;
    }
    const auto moved = session_->write(bytes);
    result = moved.bytes;
    return state_of(moved.next);
  }

  /// Returns whether the session holds more bytes, which the kernel no longer
  /// reports.
  bool must_read_more(native_socket, std::size_t) const {
    return !all_read_;
  }

private:
  static rw_state state_of(Next next) {
    return next == Next::ended || next == Next::broken ? rw_state::failure
                                                       : rw_state::success;
  }

  /// Advances the handshake; returns false when the connection is over.
  bool greet(native_socket socket) {
    all_read_ = true;
    const Next next = session_->shake_hands();
    if (next == Next::broken) {
      const auto from = network::remote_addr_of_fd(socket);
      log::warn_of_stranger(log::net, fmt::format("refused {}: TLS: {}",
                                                  from ? *from : "a stranger",
                                                  session_->why()));
    }
    if (next != Next::more)
      return next == Next::readable;
    greeted_ = true;
    entry_.leave();
    std::span<const std::byte> rest = early_;
    while (!rest.empty()) {
      const auto moved = session_->write(rest);
      if (moved.bytes == 0) // an empty socket has no room for a frame
        return false;
      rest = rest.subspan(moved.bytes);
    }
    early_ = {};
    return true;
  }

  std::unique_ptr<net::TlsSession> session_;
  net::PendingConnections::Entry entry_;
  std::vector<std::byte> early_;
  bool greeted_;
  bool all_read_ = true;
};

class SecureScribe : public caf::io::scribe {
public:
  SecureScribe(network::default_multiplexer& multiplexer, native_socket socket,
               std::unique_ptr<net::TlsSession> session, bool greeted,
               net::PendingConnections::Entry entry = {})
    : scribe(network::conn_hdl_from_socket(socket)),
      stream_(multiplexer, socket, std::move(session), greeted,
              std::move(entry)) {}

  void configure_read(caf::io::receive_policy::config config) override {
    stream_.configure_read(config);
    if (!std::exchange(launched_, true))
      stream_.start(this);
  }
  void ack_writes(bool enable) override {
    stream_.ack_writes(enable);
  }
  std::vector<char>& wr_buf() override {
    return stream_.wr_buf();
  }
  std::vector<char>& rd_buf() override {
    return stream_.rd_buf();
  }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  void flush() override {
    stream_.flush(this);
  }
  std::string addr() const override {
    const auto address = network::remote_addr_of_fd(stream_.fd());
    return address ? *address : std::string{};
  }
  std::uint16_t port() const override {
    const auto port = network::remote_port_of_fd(stream_.fd());
    return port ? *port : std::uint16_t{0};
  }
  void add_to_loop() override {
    stream_.activate(this);
  }
  void remove_from_loop() override {
    stream_.passivate();
  }

private:
  network::stream_impl<TlsPolicy> stream_;
  bool launched_ = false;
};

/// Accepts no further connection while too many are pending.
class SecureDoorman : public network::doorman_impl {
public:
  SecureDoorman(network::default_multiplexer& multiplexer, native_socket socket,
                std::shared_ptr<const net::TlsContext> tls)
    : doorman_impl(multiplexer, socket),
      tls_(std::move(tls)) {}

  bool new_connection() override {
    net::Descriptor socket{acceptor_.accepted_socket()};
    if (detached())
      return false;
    auto& multiplexer = acceptor_.backend();
    auto entry = pending_->add(AwakeClock::now());
    entry.when_late([number = socket.get()] {
      ::shutdown(number, SHUT_RDWR); // the scribe finds its end, and closes it
    });
    auto scribe = caf::make_counted<SecureScribe>(
      multiplexer, socket.get(),
      std::make_unique<net::TlsSession>(*tls_, socket.get(),
                                        net::TlsSession::Role::accepts),
      /*greeted=*/false, std::move(entry));
    static_cast<void>(socket.release()); // closed by the scribe
    if (!may_accept() && !std::exchange(paused_, true))
      remove_from_loop();
    const auto handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    return doorman::new_connection(&multiplexer, handle);
  }

  /// Called several times a second.
  void look_at_pending() {
    pending_->close_late(AwakeClock::now());
    if (!detached() && paused_ && may_accept()) {
      paused_ = false;
      add_to_loop();
    }
  }

private:
  /// Returns whether there is room; if a newcomer waits, makes some for it.
  bool may_accept() {
    if (!pending_->full())
      return true;
    pollfd newcomer{acceptor_.fd(), POLLIN, 0};
    return ::poll(&newcomer, 1, 0) > 0
           && pending_->make_room(AwakeClock::now());
  }

  std::shared_ptr<const net::TlsContext> tls_;
  std::shared_ptr<net::PendingConnections> pending_
    = std::make_shared<net::PendingConnections>();
  bool paused_ = false;
};

/// Has a doorman look at its pending connections, on the multiplexer's thread,
/// until the end.
class PendingWatch {
public:
  PendingWatch(network::default_multiplexer& multiplexer,
               caf::intrusive_ptr<SecureDoorman> doorman)
    : thread_([&multiplexer, doorman](const std::stop_token& end) {
        std::mutex mutex;
        std::condition_variable_any ended;
        std::unique_lock lock{mutex};
        while (!ended.wait_for(lock, end, look_period,
                               [&] { return end.stop_requested(); }))
          multiplexer.post([doorman] { doorman->look_at_pending(); });
      }) {}

private:
  static constexpr std::chrono::milliseconds look_period{250};
  std::jthread thread_;
};

class SecureMiddleman : public caf::io::middleman_actor_impl {
public:
  SecureMiddleman(caf::actor_config& config, caf::actor broker,
                  std::shared_ptr<const net::TlsContext> tls)
    : middleman_actor_impl(config, std::move(broker)),
      tls_(std::move(tls)) {}

  const char* name() const override {
    return "secure middleman";
  }

protected:
  /// Connects on a thread of its own, so it may block, for less time than the
  /// requester waits, so that the requester gets the reason.
  caf::expected<caf::io::scribe_ptr> connect(const std::string& host,
                                             std::uint16_t port) override {
    auto connected = network::new_tcp_connection(host, port);
    if (!connected)
      return std::move(connected.error());
    net::Descriptor socket{*connected};
    try {
      auto session = net::secure_dialed(
        socket.get(), *tls_, fmt::format("{}:{}", host, port),
        {.abort_event = -1, .progress_deadline = defaults::connect_within / 2});
      auto scribe = caf::make_counted<SecureScribe>(multiplexer(), socket.get(),
                                                    std::move(session),
                                                    /*greeted=*/true);
      static_cast<void>(socket.release()); // closed by the scribe
      return scribe;
    } catch (const FailureError& error) {
      return caf::make_error(caf::sec::cannot_connect_to_node,
                             to_string(error.failure()));
    }
  }

  caf::expected<caf::io::doorman_ptr>
  open(std::uint16_t port, const char* address, bool reuse) override {
    auto socket = network::new_tcp_acceptor_impl(port, address, reuse);
    if (!socket)
      return std::move(socket.error());
    auto doorman
      = caf::make_counted<SecureDoorman>(multiplexer(), *socket, tls_);
    watch_.emplace(multiplexer(), doorman);
    return doorman;
  }

  void on_exit() override {
    watch_.reset();
    middleman_actor_impl::on_exit();
  }

private:
  network::default_multiplexer& multiplexer() {
    return static_cast<network::default_multiplexer&>(
      system().middleman().backend());
  }

  std::shared_ptr<const net::TlsContext> tls_;
  std::optional<PendingWatch> watch_; ///< of the endpoint, if it was opened
};

} // namespace

caf::io::middleman_actor
spawn_secure_middleman(caf::actor_system& system,
                       std::shared_ptr<const net::TlsContext> tls) {
  auto broker
    = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  return system.spawn<SecureMiddleman, caf::detached + caf::hidden>(
    std::move(broker), std::move(tls));
}

} // namespace troupe::actors
