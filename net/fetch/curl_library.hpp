// The functions of libcurl 4 that fetching a file needs, loaded at run time:
// most runs fetch nothing, and libcurl brings some twenty libraries with it.
// Types and numbers are those of curl.h, which never change once published.
#pragma once

#include <initializer_list>
#include <string>

namespace troupe::net {

using CurlHandle = void*;
struct CurlList;

/// Numbers of curl_easy_setopt and curl_easy_getinfo.
namespace curl {
inline constexpr int write_data = 10001;
inline constexpr int url = 10002;
inline constexpr int user_and_password = 10005;
inline constexpr int error_buffer = 10010;
inline constexpr int user_agent = 10018;
inline constexpr int headers = 10023;
inline constexpr int certificates = 10065;
inline constexpr int aws_sigv4 = 10305;
inline constexpr int protocols = 10318;          ///< since 7.85
inline constexpr int redirect_protocols = 10319; ///< since 7.85
inline constexpr int write_function = 20011;
inline constexpr int low_speed_bytes = 19;
inline constexpr int low_speed_seconds = 20;
inline constexpr int follow_redirects = 52;
inline constexpr int most_redirects = 68;
inline constexpr int connect_timeout_s = 78;
inline constexpr int no_signal = 99;
inline constexpr int response_code = 0x200000 + 2;
inline constexpr int error_bytes = 256;
inline constexpr long global_default = 3;
} // namespace curl

/// Functions by name; results are 0 on success.
struct CurlLibrary {
  int (*global_init)(long flags) = nullptr;
  CurlHandle (*easy_init)() = nullptr;
  int (*easy_setopt)(CurlHandle handle, int option, ...) = nullptr;
  int (*easy_perform)(CurlHandle handle) = nullptr;
  int (*easy_getinfo)(CurlHandle handle, int info, ...) = nullptr;
  void (*easy_cleanup)(CurlHandle handle) = nullptr;
  const char* (*easy_strerror)(int result) = nullptr;
  CurlList* (*slist_append)(CurlList* list, const char* text) = nullptr;
  void (*slist_free_all)(CurlList* list) = nullptr;
  std::string why_not; ///< empty: every function was found

  /// Loads the first of these files that the loader finds.
  static CurlLibrary open(std::initializer_list<const char*> files);
  /// Returns the machine's library, opened once and never closed.
  static const CurlLibrary& machine();
};

} // namespace troupe::net
