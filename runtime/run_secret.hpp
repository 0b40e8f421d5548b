// What the processes of a run show to each other: a token and, off loopback, a
// key with its certificate. The master writes them to one file that only this
// user can read, workers are told its name.
#pragma once

#include "net/tls.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace troupe::runtime {

struct RunSecret {
  std::string token;
  std::string text; ///< of the file: the token's line, then PEM
  std::shared_ptr<const net::TlsContext> tls; ///< nullptr: all goes in clear
};

RunSecret make_run_secret(bool encrypted);

/// Throws ConfigError where the file cannot be read or is not whole.
RunSecret read_run_secret(const std::filesystem::path& file);

} // namespace troupe::runtime
