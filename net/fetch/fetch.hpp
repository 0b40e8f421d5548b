// Fetches one file over http or https by libcurl: redirects, proxies (the usual
// variables of the environment) and signed requests of S3 are its work. Nothing
// waits without end: for a connection, and for a server that says nothing.
#pragma once

#include "net/fetch/curl_library.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::net {

struct FetchRequest {
  std::string url;
  std::vector<std::string> headers = {}; ///< "Authorization: Bearer X"
  std::string sigv4 = {}; ///< "aws:amz:REGION:s3"; empty: not signed
  std::string user = {};  ///< "KEY:SECRET", to sign with
};

struct FetchReply {
  std::string error; ///< of the connection, in words; then no status
  long status = 0;

  bool fetched() const {
    return error.empty() && status / 100 == 2;
  }
};

/// Hands the body to `write`, in parts; that of a refusal too. What `write`
/// throws ends the transfer and is thrown.
FetchReply fetch(const CurlLibrary& library, const FetchRequest& request,
                 const std::function<void(std::string_view)>& write);

} // namespace troupe::net
