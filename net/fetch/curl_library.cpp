#include "net/fetch/curl_library.hpp"

#include <dlfcn.h>

namespace troupe::net {

namespace {

template <class Function>
void load_function(void* library, const char* name, Function& function,
                   std::string& why_not) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr && why_not.empty())
    why_not = std::string("it has no ") + name;
}

} // namespace

CurlLibrary CurlLibrary::open(std::initializer_list<const char*> files) {
  CurlLibrary found;
  void* library = nullptr;
  for (const char* file : files)
    if (library == nullptr)
      library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    found.why_not = reason == nullptr ? "it cannot be loaded" : reason;
    return found;
  }
  auto& why = found.why_not;
  load_function(library, "curl_global_init", found.global_init, why);
  load_function(library, "curl_easy_init", found.easy_init, why);
  load_function(library, "curl_easy_setopt", found.easy_setopt, why);
  load_function(library, "curl_easy_perform", found.easy_perform, why);
  load_function(library, "curl_easy_getinfo", found.easy_getinfo, why);
  load_function(library, "curl_easy_cleanup", found.easy_cleanup, why);
  load_function(library, "curl_easy_strerror", found.easy_strerror, why);
  load_function(library, "curl_slist_append", found.slist_append, why);
  load_function(library, "curl_slist_free_all", found.slist_free_all, why);
  if (why.empty() && found.global_init(curl::global_default) != 0)
    why = "it does not start";
  return found;
}

const CurlLibrary& CurlLibrary::machine() {
  static const CurlLibrary found
    = open({"libcurl.so.4", "libcurl-gnutls.so.4"});
  return found;
}

} // namespace troupe::net
