// The WebSocket of one viewer: checks the run folder every few milliseconds
// while the connection is idle and sends what is new, one message at a time, so
// a slow viewer gets larger portions and never a queue.
#pragma once

#include "runtime/page/run_feed.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <atomic>
#include <deque>
#include <memory>

namespace troupe::runtime {

class WatchSession : public std::enable_shared_from_this<WatchSession> {
public:
  using Request = boost::beast::http::request<boost::beast::http::string_body>;

  /// Once `closing` is set, sends what exists and ends the connection.
  WatchSession(boost::asio::ip::tcp::socket socket,
               std::unique_ptr<RunFeed> feed,
               std::shared_ptr<const std::atomic<bool>> closing);
  /// Replies to the upgrade and starts sending.
  void start(const Request& request);

private:
  template <class Body>
  void guarded(Body&& body);
  void listen();
  void take_wish();
  void tick();
  void send_next();
  void end();

  boost::beast::websocket::stream<boost::asio::ip::tcp::socket> socket_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer received_;
  std::shared_ptr<const std::atomic<bool>> closing_;
  std::unique_ptr<RunFeed> feed_;
  std::deque<FeedMessage> outbox_;
  bool ended_ = false;
};

} // namespace troupe::runtime
