// The WebSocket of one viewer: checks the run folder every few milliseconds
// while the connection is idle and sends what is new, one message at a time, so
// a slow viewer gets larger portions and never a queue.
#pragma once

#include "runtime/page/line_follower.hpp"
#include "runtime/page/trace_follower.hpp"
#include "runtime/run_folder/run_folder.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace troupe::runtime {

class WatchSession : public std::enable_shared_from_this<WatchSession> {
public:
  using Request = boost::beast::http::request<boost::beast::http::string_body>;

  /// Once `closing` is set, sends what exists and ends the connection.
  WatchSession(boost::asio::ip::tcp::socket socket, const RunFolder& folder,
               std::shared_ptr<const std::atomic<bool>> closing);
  /// Replies to the upgrade and starts sending.
  void start(const Request& request);

private:
  struct Message {
    bool binary = false;
    std::string bytes;
  };
  /// A growing text file and the message type under which its lines are sent.
  struct Lines {
    std::filesystem::path path;
    std::string type;
    std::uint64_t history_bytes = 0;
    std::unique_ptr<LineFollower> file;
  };

  template <class Body>
  void guarded(Body&& body);
  void listen();
  void tick();
  void collect();
  void find_files();
  void find_worker_logs();
  std::uint64_t unread_bytes() const;
  void tell_loading();
  void open_lines(Lines& lines);
  void collect_lines(Lines& lines);
  void collect_status();
  void send_next();
  void end();

  boost::beast::websocket::stream<boost::asio::ip::tcp::socket> socket_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer ignored_;
  RunFolder folder_;
  std::shared_ptr<const std::atomic<bool>> closing_;
  TraceFollower trace_;
  std::vector<Lines> lines_;
  std::set<std::string> worker_logs_; ///< followed already
  std::string status_;
  std::uint64_t to_load_ = 0; ///< the most that was unread
  bool loaded_ = false;       ///< all that existed at first was sent, and the
                              ///< page was notified
  std::deque<Message> outbox_;
  bool ended_ = false;
};

} // namespace troupe::runtime
