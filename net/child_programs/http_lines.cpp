#include "net/child_programs/http_lines.hpp"

#include "config/base/error.hpp"
#include "net/base/defaults.hpp"
#include "net/base/wake_event.hpp"
#include "net/child_programs/http_connection.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <future>
#include <thread>

namespace troupe::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// named, because coroutines of HttpLines::Round hold objects of these types
inline namespace http_lines_parts {

/// Length at which a message cuts an answer.
constexpr std::size_t most_shown_bytes = 200;

struct FoundHost {
  tcp::resolver::results_type hosts;
  error_code error;
};

/// Looks a host up on a thread of its own, for which nobody waits: the call of
/// the system has no deadline and cannot be ended.
std::shared_future<FoundHost> search_host(const HttpUrl& url) {
  std::promise<FoundHost> promise;
  auto future = promise.get_future().share();
  std::thread([url, promise = std::move(promise)]() mutable {
    FoundHost found;
    asio::io_context io;
    found.hosts = tcp::resolver(io).resolve(url.host, url.port, found.error);
    promise.set_value(std::move(found));
  }).detach();
  return future;
}

} // namespace http_lines_parts

class HttpLines::Round {
public:
  Round(HttpLines& http, const LineSource& source, const LineHandler& handler)
    : http_(http),
      source_(source),
      handler_(handler) {
    if (source.more == nullptr)
      return;
    more_.assign(::dup(source.more->descriptor()));
    watch();
  }

  void run(const std::atomic<bool>* stop) {
    while (take_lines()) {
      io_.restart(); // it may have had nothing to do
      io_.run_one_for(kLivenessSlice);
      if (stop != nullptr && *stop)
        throw FailureError({.code = Errc::aborted,
                            .who = http_.options_.name,
                            .what = "the run ended while it scored",
                            .cause = ""});
    }
  }

private:
  /// Handles rings of the event, each of which ends the wait for connections.
  void watch() {
    more_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](error_code error) {
                       source_.more->clear();
                       if (!error)
                         watch();
                     });
  }

  /// Takes new lines; returns false once all are settled and no more come.
  bool take_lines() {
    std::ranges::move(source_.take(), std::back_inserter(lines_));
    const auto open = lines_.size() - num_settled_;
    if (open > 0 && !has_host())
      return true;
    const auto wanted = std::min<std::size_t>(http_.options_.workers, open);
    for (; num_lanes_ < wanted; ++num_lanes_)
      asio::co_spawn(io_, lane(), [](std::exception_ptr thrown) {
        if (thrown)
          std::rethrow_exception(thrown);
      });
    return open > 0;
  }

  /// Returns whether the host's addresses are known; waits a moment for them.
  bool has_host() {
    if (!hosts_.empty())
      return true;
    const auto& url = http_.options_.url;
    if (!search_.valid()) {
      search_ = search_host(url);
      search_end_ = HttpClock::now() + kHostFoundWithin;
    }
    if (search_.wait_for(kLivenessSlice) == std::future_status::ready) {
      const auto found = search_.get();
      if (found.error)
        refuse(url.host + ": " + found.error.message());
      hosts_ = found.hosts;
    } else if (HttpClock::now() > search_end_) {
      refuse(url.host + ": the name service does not answer");
    }
    return !hosts_.empty();
  }

  asio::awaitable<void> lane() {
    HttpConnection connection(io_, http_.options_.url, hosts_);
    while (next_ < lines_.size())
      co_await settle(connection, next_++);
    --num_lanes_;
  }

  asio::awaitable<void> settle(HttpConnection& connection, std::size_t line) {
    const auto deadline = HttpClock::now()
                          + std::chrono::duration_cast<HttpClock::duration>(
                            http_.options_.deadline.silence);
    HttpClock::duration pause = kFirstRetryPause;
    std::string before; // outcome of the previous attempt
    HttpReply reply = co_await connection.send(post(line), deadline);
    while (reply.worth_another_try() && HttpClock::now() + pause < deadline) {
      asio::steady_timer timer(io_, pause);
      co_await timer.async_wait(asio::use_awaitable);
      pause *= 2;
      before = reply.text();
      reply = co_await connection.send(post(line), deadline);
    }
    ++num_settled_;
    if (reply.answered())
      take(line, reply.body);
    else
      lose(line, reply, before);
  }

  HttpCall post(std::size_t line) const {
    return {.target = http_.options_.url.target, .body = lines_[line] + "\n"};
  }

  void take(std::size_t line, std::string_view reply) {
    while (reply.ends_with('\n') || reply.ends_with('\r'))
      reply.remove_suffix(1);
    http_.ever_answered_ = true;
    const auto to = handler_.line_of(reply);
    if (to == line)
      return handler_.on_reply(line, reply);
    if (to)
      handler_.on_unmatched(reply);
    handler_.on_loss(line, LineLoss::failed,
                     "what the server answered is no JSON with the id asked "
                     "for: "
                       + std::string(reply.substr(0, most_shown_bytes)));
  }

  void lose(std::size_t line, const HttpReply& reply,
            const std::string& before) {
    if (!http_.ever_answered_ && !reply.late())
      refuse("the server does not answer: " + reply.text());
    const std::string why
      = reply.late() ? http_.options_.deadline.text() : reply.text();
    handler_.on_loss(line, reply.late() ? LineLoss::late : LineLoss::failed,
                     before.empty() || before == why
                       ? why
                       : why + "; the try before: " + before);
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw FailureError({.code = Errc::bad_input,
                        .who = http_.options_.name,
                        .what = what,
                        .cause = ""});
  }

  HttpLines& http_;
  const LineSource& source_;
  const LineHandler& handler_;
  std::deque<std::string> lines_; ///< lanes keep references
  std::size_t next_ = 0;
  std::size_t num_settled_ = 0;
  std::size_t num_lanes_ = 0;
  std::shared_future<FoundHost> search_;
  HttpClock::time_point search_end_;
  tcp::resolver::results_type hosts_;
  asio::io_context io_{1}; ///< destroyed first: ends the lanes
  asio::posix::stream_descriptor more_{io_};
};

void HttpLines::run(const LineSource& source, const LineHandler& handler,
                    const std::atomic<bool>* stop) {
  Round(*this, source, handler).run(stop);
}

} // namespace troupe::net
