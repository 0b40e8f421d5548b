// Serves the trace page of one run over HTTP, and what the run writes over a
// WebSocket: trace records as bytes, status, metrics, failures and samples as
// text. Everything comes from the files of the run folder, so live, finished
// and crashed runs look alike, and an unwatched page costs the master nothing.
#pragma once

#include "runtime/run_folder/run_folder.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::runtime {

struct TraceServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;        ///< 0: any free port
  std::string token;             ///< that viewers need; empty: a new one
  std::vector<RunFolder> beside; ///< runs to compare with, `/events?run=1`, ..
};

/// Returns where a page listens: on loopback, or at `bind` (`auto`: loopback).
TraceServerOptions page_options(const std::string& bind, std::uint16_t port);

/// Returns the page: one self-contained HTML document, assembled at build time
/// from the files of runtime/page/web.
std::string_view trace_page();

class TraceServer {
public:
  /// Listens and starts one thread. Throws FailureError (io): port in use.
  TraceServer(const RunFolder& folder, TraceServerOptions options);
  ~TraceServer(); ///< closes every connection
  TraceServer(const TraceServer&) = delete;
  TraceServer& operator=(const TraceServer&) = delete;

  /// Returns "http://127.0.0.1:35123/", which everybody may know.
  std::string address() const;
  const std::string& token() const;
  /// Returns the address with the token.
  std::string url() const;
  /// Requests the desktop to show the page; if there is none, logs a warning.
  void open_in_browser();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::runtime
