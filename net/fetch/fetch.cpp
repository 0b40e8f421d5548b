#include "net/fetch/fetch.hpp"

#include "config/base/error.hpp"

#include <array>
#include <cstdlib>
#include <exception>
#include <memory>

namespace troupe::net {

namespace {

constexpr long connect_within_s = 30;
/// A transfer that is slower than this for so long has ended: a file of
/// gigabytes may take hours.
constexpr long least_bytes_a_second = 1;
constexpr long silence_s = 60;
constexpr long redirects = 10;

/// The receiver of a body, across the C functions between.
struct FetchBody {
  const std::function<void(std::string_view)>& write;
  std::exception_ptr thrown = {};
};

std::size_t take_body(char* bytes, std::size_t size, std::size_t count,
                      void* receiver) {
  auto& body = *static_cast<FetchBody*>(receiver);
  try {
    body.write({bytes, size * count});
  } catch (...) {
    body.thrown = std::current_exception();
    return 0; // ends the transfer
  }
  return size * count;
}

class Transfer {
public:
  Transfer(const CurlLibrary& library, const FetchRequest& request)
    : library_(library),
      handle_(library.easy_init()) {
    TROUPE_CHECK(handle_ != nullptr, "libcurl has no memory");
    set(curl::url, request.url.c_str());
    set(curl::error_buffer, error_.data());
    set(curl::user_agent, "troupe");
    set(curl::protocols, "http,https");
    set(curl::redirect_protocols, "http,https");
    set(curl::follow_redirects, 1L);
    set(curl::most_redirects, redirects);
    set(curl::connect_timeout_s, connect_within_s);
    set(curl::low_speed_bytes, least_bytes_a_second);
    set(curl::low_speed_seconds, silence_s);
    set(curl::no_signal, 1L);
    if (const char* trusted = std::getenv("SSL_CERT_FILE"))
      set(curl::certificates, trusted);
    if (!request.sigv4.empty()) {
      set(curl::aws_sigv4, request.sigv4.c_str());
      set(curl::user_and_password, request.user.c_str());
    }
    for (const auto& header : request.headers)
      headers_ = library.slist_append(headers_, header.c_str());
    if (headers_ != nullptr)
      set(curl::headers, headers_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    library_.easy_cleanup(handle_);
    library_.slist_free_all(headers_);
  }

  FetchReply run(FetchBody& body) {
    set(curl::write_function, &take_body);
    set(curl::write_data, static_cast<void*>(&body));
    const int result = library_.easy_perform(handle_);
    FetchReply reply;
    if (result != 0)
      reply.error = error_.front() != '\0' ? std::string(error_.data())
                                           : library_.easy_strerror(result);
    else
      library_.easy_getinfo(handle_, curl::response_code, &reply.status);
    return reply;
  }

private:
  template <class T>
  void set(int option, T value) {
    library_.easy_setopt(handle_, option, value);
  }

  const CurlLibrary& library_;
  CurlHandle handle_;
  CurlList* headers_ = nullptr;
  std::array<char, curl::error_bytes> error_{};
};

} // namespace

FetchReply fetch(const CurlLibrary& library, const FetchRequest& request,
                 const std::function<void(std::string_view)>& write) {
  if (!library.why_not.empty())
    return {.error = "libcurl: " + library.why_not};
  FetchBody body{.write = write};
  auto reply = Transfer(library, request).run(body);
  if (body.thrown)
    std::rethrow_exception(body.thrown);
  return reply;
}

} // namespace troupe::net
