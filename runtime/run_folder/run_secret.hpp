// Credentials of the processes of a run: a token and a key with its
// certificate. The master writes them to one file that only this user can read;
// workers get its name. Orders always go over TLS with it, also on loopback;
// rows, weights and sums do unless the file states otherwise.
#pragma once

#include "net/transport/tls.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace troupe::runtime {

struct RunSecret {
  std::string token;
  std::string text; ///< contents of the file: the token's line, perhaps one of
                    ///< `data_in_clear`, then PEM
  std::shared_ptr<const net::TlsContext> tls; ///< for orders
  bool encrypts_data = false;

  /// Returns the context for rows, weights and sums; nullptr: plain text,
  /// protected by the token only.
  std::shared_ptr<const net::TlsContext> data_tls() const {
    return encrypts_data ? tls : nullptr;
  }
};

RunSecret make_run_secret(bool encrypts_data);

/// Returns the secret of a file that outlives attempts and starts of a run,
/// made where it is missing.
RunSecret lasting_run_secret(const std::filesystem::path& file,
                             bool encrypts_data);

/// Name of standard input as the file of a secret.
inline constexpr const char* standard_input = "-";

/// Throws ConfigError if the file cannot be read or is incomplete.
RunSecret read_run_secret(const std::filesystem::path& file);

} // namespace troupe::runtime
