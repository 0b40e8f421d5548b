// What the processes of a run show to each other: a token and a key with its
// certificate. The master writes them to one file that only this user can read,
// workers are told its name. Orders always go over TLS with it, also on
// loopback; rows, weights and sums where the file does not say otherwise.
#pragma once

#include "net/tls.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace troupe::runtime {

struct RunSecret {
  std::string token;
  std::string text; ///< of the file: the token's line, perhaps one of
                    ///< `data_in_clear`, then PEM
  std::shared_ptr<const net::TlsContext> tls; ///< of orders
  bool encrypts_data = false;

  /// Of rows, weights and sums; nullptr: in clear, behind the token.
  std::shared_ptr<const net::TlsContext> data_tls() const {
    return encrypts_data ? tls : nullptr;
  }
};

RunSecret make_run_secret(bool encrypts_data);

/// Throws ConfigError where the file cannot be read or is not whole.
RunSecret read_run_secret(const std::filesystem::path& file);

} // namespace troupe::runtime
