// A server that answers lines: each is POSTed, the body of the response is its
// answer. A few connections are at work at once; refusals, lost connections and
// overload (408, 429, 5xx) are tried again with growing pauses until the line's
// time is up. What lines mean is the caller's.
#pragma once

#include "config/http_url.hpp"
#include "net/line_answers.hpp"

#include <atomic>
#include <chrono>
#include <utility> // Asio 1.74 forgets it
#include <vector>

namespace troupe::net {

struct HttpLineOptions {
  std::string name; ///< "reward.url", for messages
  HttpUrl url;
  std::uint32_t workers = 1; ///< connections
  AnswerDeadline deadline = {};
};

class HttpLines {
public:
  explicit HttpLines(HttpLineOptions options) : options_(std::move(options)) {}

  /// Has each line answered or lost, until there are no more. Throws
  /// FailureError: bad_input when the host is unknown or a line was lost before
  /// the server ever answered any; aborted once `stop` is raised.
  void run(const LineSource& source, const LineHandler& handler,
           const std::atomic<bool>* stop);

private:
  class Round;

  HttpLineOptions options_;
  bool ever_answered_ = false;
};

} // namespace troupe::net
