#include "models/data/remote_file.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "models/data/row_cache.hpp"
#include "net/base/sha256.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace troupe::models {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view sum_mark = "#sha256=";
constexpr std::size_t sum_digits = 64;
const std::string sum_of_nothing
  = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

[[noreturn]] void no_address(const std::string& name,
                             const std::string& expected,
                             const std::string& got) {
  throw ConfigError({.place = {name, 0},
                     .path = "",
                     .expected = expected,
                     .got = got,
                     .hint = "https://HOST/PATH, s3://BUCKET/KEY or "
                             "hf://datasets/OWNER/NAME/PATH"});
}

/// Cuts the part before `end` off the front of `text`, and `end` with it.
std::string_view cut_front(std::string_view& text, char end) {
  const auto at = std::min(text.find(end), text.size());
  const auto front = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return front;
}

/// Letters beside the alphanumeric ones that a path has as they are: of the
/// Hub also those of an escape that was written, of S3 what is signed so.
constexpr std::string_view plain_of_hub = "-._~/%!$&'()*+,;=:@";
constexpr std::string_view plain_of_s3 = "-._~/";

/// Returns a path as an address has it.
std::string escaped_path(std::string_view path, std::string_view plain) {
  constexpr const char* digits = "0123456789ABCDEF";
  std::string text;
  for (const char letter : path) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0 || plain.find(letter) != plain.npos)
      text += letter;
    else
      text += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return text;
}

std::string first_of(const Variables& variables,
                     std::initializer_list<const char*> names,
                     const std::string& otherwise) {
  for (const char* name : names)
    if (auto value = variables(name); !value.empty())
      return value;
  return otherwise;
}

std::string without_slash(std::string address) {
  while (address.ends_with('/'))
    address.pop_back();
  return address;
}

std::string host_of(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  return std::string(url.substr(0, url.find_first_of("/?")));
}

std::string name_of_path(std::string_view path) {
  path = path.substr(0, path.find('?'));
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string hub_url(const std::string& name, std::string_view path,
                    const Variables& variables) {
  const auto kind = cut_front(path, '/');
  const auto owner = cut_front(path, '/');
  auto repository = cut_front(path, '/');
  const auto title = cut_front(repository, '@');
  if (kind != "datasets" || owner.empty() || title.empty() || path.empty())
    no_address(name, "hf://datasets/OWNER/NAME[@REVISION]/PATH",
               "another form");
  const std::string revision(repository.empty() ? "main" : repository);
  return without_slash(
           first_of(variables, {"HF_ENDPOINT"}, "https://huggingface.co"))
         + "/datasets/" + std::string(owner) + "/" + std::string(title)
         + "/resolve/" + revision + "/" + escaped_path(path, plain_of_hub);
}

net::FetchRequest hub_request(const std::string& name, std::string_view path,
                              const Variables& variables) {
  net::FetchRequest request{.url = hub_url(name, path, variables)};
  if (const auto token = variables("HF_TOKEN"); !token.empty())
    request.headers.push_back("Authorization: Bearer " + token);
  return request;
}

net::FetchRequest bucket_request(const std::string& name, std::string_view path,
                                 const Variables& variables) {
  const std::string bucket(cut_front(path, '/'));
  if (bucket.empty() || path.empty())
    no_address(name, "s3://BUCKET/KEY", "another form");
  const auto region
    = first_of(variables, {"AWS_REGION", "AWS_DEFAULT_REGION"}, "us-east-1");
  const auto endpoint = without_slash(
    first_of(variables, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, ""));
  net::FetchRequest request;
  request.url = endpoint.empty()
                  ? "https://" + bucket + ".s3." + region + ".amazonaws.com/"
                  : endpoint + "/" + bucket + "/";
  request.url += escaped_path(path, plain_of_s3);
  const auto key = variables("AWS_ACCESS_KEY_ID");
  if (key.empty()) // a bucket that everybody may read
    return request;
  request.sigv4 = "aws:amz:" + region + ":s3";
  // what S3 wants of every signed request: of a body without a byte
  request.headers.push_back("x-amz-content-sha256: " + sum_of_nothing);
  request.user = key + ":" + variables("AWS_SECRET_ACCESS_KEY");
  if (const auto token = variables("AWS_SESSION_TOKEN"); !token.empty())
    request.headers.push_back("x-amz-security-token: " + token);
  return request;
}

/// Cuts the checksum off; "" if there is none.
std::string cut_sum(const std::string& name, std::string_view& address) {
  const auto at = address.find('#');
  if (at == address.npos)
    return "";
  const auto mark = address.substr(at);
  address = address.substr(0, at);
  std::string sum(mark.starts_with(sum_mark) ? mark.substr(sum_mark.size())
                                             : std::string_view{});
  for (char& digit : sum)
    digit = static_cast<char>(std::tolower(static_cast<unsigned char>(digit)));
  const bool is_sum = sum.size() == sum_digits
                      && sum.find_first_not_of("0123456789abcdef") == sum.npos;
  if (!is_sum)
    no_address(name, "#sha256= and 64 hexadecimal digits",
               "'" + std::string(mark) + "'");
  return sum;
}

std::string words_of(const RemoteFile& file, const net::FetchReply& reply) {
  return reply.error.empty()
           ? file.host + ": HTTP status " + std::to_string(reply.status)
           : "no connection to " + file.host + " (" + reply.error + ")";
}

std::string hint_for(const std::string& name, const net::FetchReply& reply) {
  constexpr long unauthorized = 401;
  constexpr long forbidden = 403;
  if (reply.status != unauthorized && reply.status != forbidden)
    return "a copy on this machine in its place; what was fetched once needs "
           "no "
           "network";
  if (name.starts_with("hf://"))
    return "HF_TOKEN=TOKEN of somebody who may read it";
  if (name.starts_with("s3://"))
    return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of somebody who may "
           "read it";
  return "an address that needs no log-in";
}

void download(const std::string& name, const RemoteFile& file,
              const fs::path& target) {
  log::data.info("fetches " + name);
  AtomicFile whole(target);
  const auto reply
    = net::fetch(net::CurlLibrary::machine(), file.request,
                 [&](std::string_view part) { whole.write(part); });
  if (!reply.fetched())
    throw ConfigError({.place = {name, 0},
                       .path = "",
                       .expected = "a file that can be fetched",
                       .got = words_of(file, reply),
                       .hint = hint_for(name, reply)});
  whole.commit();
  if (file.sha256.empty())
    return;
  if (const auto sum = net::sha256_of_file(target); sum != file.sha256)
    throw ConfigError({.place = {name, 0},
                       .path = "",
                       .expected = "SHA-256 " + file.sha256,
                       .got = sum,
                       .hint = "the address or the sum of the file meant"});
}

std::string variable_of_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

} // namespace

bool is_remote_file(std::string_view name) {
  constexpr std::array<std::string_view, 4> schemes
    = {"https://", "http://", "s3://", "hf://"};
  return std::ranges::any_of(
    schemes, [&](std::string_view scheme) { return name.starts_with(scheme); });
}

RemoteFile parse_remote_file(const std::string& name,
                             const Variables& variables) {
  std::string_view address = name;
  RemoteFile file;
  file.sha256 = cut_sum(name, address);
  if (address.starts_with("hf://"))
    file.request = hub_request(name, address.substr(5), variables);
  else if (address.starts_with("s3://"))
    file.request = bucket_request(name, address.substr(5), variables);
  else if (is_remote_file(address))
    file.request.url = address;
  else
    no_address(name, "an address", "another form");
  file.host = host_of(file.request.url);
  file.file_name = name_of_path(file.request.url);
  if (file.host.empty() || file.file_name.empty())
    no_address(name, "the address of a file",
               file.host.empty() ? "no host" : "a folder");
  return file;
}

fs::path fetched_file(const std::string& name) {
  const auto file = parse_remote_file(name, variable_of_environment);
  const CachedSource source{
    .source = name, .state = "fetched", .name = file.file_name};
  return cached_file(
    row_cache_folder(name), source,
    [&](const fs::path& target) { download(name, file, target); });
}

} // namespace troupe::models
