// A server that answers lines: each line is POSTed, and the body of the
// response is its answer. Several connections work concurrently; refusals, lost
// connections and overload (408, 429, 5xx) are retried with growing pauses
// until the line's deadline. The caller defines what lines mean.
#pragma once

#include "config/base/http_url.hpp"
#include "net/child_programs/line_replies.hpp"

#include <atomic>
#include <chrono>
#include <utility> // missing in Asio 1.74
#include <vector>

namespace troupe::net {

struct HttpLineOptions {
  std::string name; ///< "reward.url", for messages
  HttpUrl url;
  std::uint32_t workers = 1; ///< connections
  ReplyDeadline deadline = {};
};

class HttpLines {
public:
  explicit HttpLines(HttpLineOptions options) : options_(std::move(options)) {}

  /// Processes all lines until each is answered or lost and no more come.
  /// Throws FailureError: bad_input if the host is unknown or a line was lost
  /// before the server ever answered any; aborted once `stop` is set.
  void run(const LineSource& source, const LineHandler& handler,
           const std::atomic<bool>* stop);

private:
  class Round;

  HttpLineOptions options_;
  bool ever_answered_ = false;
};

} // namespace troupe::net
