// Files of rows on other machines: their addresses as users write them, and the
// requests that fetch them. Pure but for `fetched_file`, which fetches a file
// once into the user's cache; what is there needs no network.
#pragma once

#include "net/fetch/fetch.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace troupe::models {

/// Returns true for https://, http://, s3:// and hf:// addresses.
bool is_remote_file(std::string_view name);

/// Returns a variable of the environment; "" if it is not set.
using Variables = std::function<std::string(const char* name)>;

/// How a file is fetched.
struct RemoteFile {
  net::FetchRequest request;
  std::string host;        ///< for messages
  std::string file_name;   ///< "train-00000-of-00001.parquet"
  std::string sha256 = {}; ///< that it must have; empty: any
};

/// Reads `https://HOST/PATH`, `s3://BUCKET/KEY` (AWS_ACCESS_KEY_ID,
/// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL) or
/// `hf://datasets/OWNER/NAME[@REVISION]/PATH` (HF_TOKEN, HF_ENDPOINT), each
/// with
/// `#sha256=DIGITS` or without. Throws ConfigError that names it.
RemoteFile parse_remote_file(const std::string& name,
                             const Variables& variables);

/// Returns the file in the cache, fetched unless it is there. Throws
/// ConfigError that names it if it cannot be fetched or has another checksum.
std::filesystem::path fetched_file(const std::string& name);

} // namespace troupe::models
