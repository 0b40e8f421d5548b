#include "runtime/run_folder/run_secret.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/defaults.hpp"
#include "config/base/error.hpp"
#include "config/base/random_hex.hpp"
#include "runtime/base/jsonl_file.hpp"

#include <iostream>
#include <iterator>
#include <string_view>

namespace troupe::runtime {

namespace {

constexpr std::string_view data_in_clear = "data in clear\n";

} // namespace

RunSecret make_run_secret(bool encrypts_data) {
  RunSecret secret;
  secret.token = random_hex(defaults::token_bytes);
  secret.text = secret.token + "\n";
  if (!encrypts_data)
    secret.text += data_in_clear;
  secret.text += net::make_run_certificate();
  secret.tls = std::make_shared<net::TlsContext>(secret.text);
  secret.encrypts_data = encrypts_data;
  return secret;
}

RunSecret read_run_secret(const std::filesystem::path& file) {
  RunSecret secret;
  secret.text = file == standard_input
                  ? std::string{std::istreambuf_iterator<char>(std::cin), {}}
                  : read_file(file);
  secret.token = secret.text.substr(0, secret.text.find_first_of(" \r\n"));
  secret.encrypts_data = secret.text.find(data_in_clear) == std::string::npos;
  if (secret.text.find("-----BEGIN") == std::string::npos)
    return secret; // no run accepts it
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

RunSecret lasting_run_secret(const std::filesystem::path& file,
                             bool encrypts_data) {
  if (!std::filesystem::exists(file)) {
    if (file.has_parent_path())
      std::filesystem::create_directories(file.parent_path());
    replace_private_file(file, make_run_secret(encrypts_data).text);
  }
  RunSecret secret = read_run_secret(file);
  if (secret.tls == nullptr || secret.token.empty())
    throw ConfigError({.place = {file.string(), 0},
                       .path = "cluster.secret",
                       .expected = "a token, then a key with its certificate",
                       .got = "a file without them",
                       .hint = "the name of a new file"});
  return secret;
}

} // namespace troupe::runtime
