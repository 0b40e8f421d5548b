#include "runtime/run_secret.hpp"

#include "config/defaults.hpp"
#include "config/error.hpp"
#include "runtime/jsonl_file.hpp"
#include "runtime/random_hex.hpp"

#include <algorithm>
#include <cctype>

namespace troupe::runtime {

RunSecret make_run_secret(bool encrypted) {
  RunSecret secret;
  secret.token = random_hex(defaults::token_bytes);
  secret.text = secret.token + "\n";
  if (!encrypted)
    return secret;
  secret.text += net::make_run_certificate();
  secret.tls = std::make_shared<net::TlsContext>(secret.text);
  return secret;
}

RunSecret read_run_secret(const std::filesystem::path& file) {
  RunSecret secret;
  secret.text = read_file(file);
  const auto pem = secret.text.find("-----BEGIN");
  secret.token = secret.text.substr(0, pem);
  std::erase_if(secret.token,
                [](unsigned char c) { return std::isspace(c) != 0; });
  if (pem == std::string::npos)
    return secret;
  try {
    secret.tls = std::make_shared<net::TlsContext>(secret.text);
  } catch (const FailureError& error) {
    throw ConfigError({.place = {file.string(), 0},
                       .path = "",
                       .expected = "a token, then a key with its certificate",
                       .got = error.failure().cause,
                       .hint = "a new copy of RUN/.token"});
  }
  return secret;
}

} // namespace troupe::runtime
