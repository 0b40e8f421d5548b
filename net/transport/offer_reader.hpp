// One connection to offered bytes: a handshake if it is encrypted, the
// token and the number of the reader, then all bytes, then the reader's close.
// Runs on the thread of the offer.
#pragma once

#include "config/base/awake_clock.hpp"
#include "config/base/error.hpp"
#include "net/transport/listener.hpp"
#include "net/transport/pending_connections.hpp"
#include "net/transport/tls_stream.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>

namespace troupe::net {

/// State that the readers of an offer share.
struct OfferState {
  std::string who;
  std::span<const std::byte> bytes;
  std::string token;
  std::chrono::milliseconds progress_deadline{};
  std::optional<TlsContext> tls = {};
  std::set<std::uint32_t> numbers = {}; ///< of those who have begun
  mutable std::mutex mutex = {};
  std::optional<Failure> failure = {}; ///< the first; under the mutex
};

class OfferReader : public std::enable_shared_from_this<OfferReader> {
public:
  /// `offer` outlives all operations.
  OfferReader(boost::asio::ip::tcp::socket socket, std::string peer,
              PendingConnections::Entry entry, OfferState& offer);
  void start();

private:
  using ErrorCode = boost::system::error_code;

  template <class Operation>
  void through_stream(Operation&& operation);
  void shake_hands();
  void read_greeting();
  void greet();
  void send_all();
  void moved(std::size_t bytes);
  void wait_for_close();
  void watch_progress();
  void fail(Errc code, const std::string& what);
  void lose(const ErrorCode& error);
  void refuse_stranger(const std::string& why);
  void close();

  boost::asio::ip::tcp::socket socket_;
  std::optional<TlsStream> tls_; ///< {}: in clear
  boost::asio::steady_timer timer_;
  std::string peer_;
  PendingConnections::Entry entry_; ///< until greeted
  OfferState& offer_;
  std::string greeting_; ///< token and number
  std::size_t sent_ = 0;
  AwakeClock::time_point last_progress_;
  bool closed_ = false;
};

} // namespace troupe::net
