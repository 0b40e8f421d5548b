// Who may see the page: whoever knows its token, from its address or from the
// cookie that the first visit got. Loopback is no protection: all users of a
// host share it. The token is in one file that only the owner of the run can
// read, and in no other file of the run.
#pragma once

#include "runtime/page/http_server.hpp"
#include "runtime/run_folder/run_folder.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace troupe::runtime {

class PageAccess {
public:
  explicit PageAccess(std::string token) : token_(std::move(token)) {}

  /// Returns why a request to this port is refused; empty: it is not. Another
  /// page of this host gets the run's events with the token in its address; a
  /// cookie, which browsers send by themselves, does not suffice for it.
  std::string refuse(const HttpRequest& request, std::uint16_t port) const;
  /// Returns the header that makes a browser send the token by itself. Its name
  /// has the port: browsers share cookies between all ports of a host.
  std::string cookie(std::uint16_t port) const;

private:
  std::string token_;
};

/// Returns the part of the page's address that has the token.
std::string token_query(const std::string& token);

/// Writes the file of the token.
void write_page_token(const RunFolder& folder, const std::string& token);
/// Returns the address of a run's page as its owner may see it: with the token,
/// if this user can read it.
std::string address_with_token(const RunFolder& folder,
                               const std::string& address);

} // namespace troupe::runtime
