// Serves the trace page of one run over HTTP, and what the run writes over a
// WebSocket: trace records as bytes, status, metrics, failures and samples as
// text. Everything comes from the files of the run folder, so live, finished
// and crashed runs look alike, and a master pays nothing while nobody watches.
#pragma once

#include "runtime/run_folder.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::runtime {

struct TraceServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0; ///< 0: any free port
  /// Needed in the page's address; empty only on loopback.
  std::string token;
};

/// Where a page listens: on loopback without a token, or where `bind` says
/// (`auto`: loopback) with one.
TraceServerOptions page_options(const std::string& bind, std::uint16_t port);

/// Asks the desktop to show `url`; where there is none, a warning.
void open_in_browser(const std::string& url);

class TraceServer {
public:
  /// Listens and starts one thread. Throws FailureError (io): port in use.
  TraceServer(const RunFolder& folder, TraceServerOptions options);
  ~TraceServer(); ///< closes every connection
  TraceServer(const TraceServer&) = delete;
  TraceServer& operator=(const TraceServer&) = delete;

  /// "http://127.0.0.1:35123/", with ?token=.. where one is needed.
  std::string url() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::runtime
