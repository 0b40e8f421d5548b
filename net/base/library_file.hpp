// A shared library that is loaded at run time, and its functions by name: for
// libraries that a host may lack. It stays loaded until the process ends.
#pragma once

#include <dlfcn.h>

#include <string>

namespace troupe::net {

class LibraryFile {
public:
  explicit LibraryFile(const char* file)
    : file_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (file_ == nullptr)
      why_not_ = ::dlerror();
  }

  /// Sets the function of this name; null if the library lacks it.
  template <class Function>
  void find(const char* name, Function*& function) {
    if (file_ == nullptr)
      return;
    function = reinterpret_cast<Function*>(::dlsym(file_, name));
    if (function == nullptr && why_not_.empty())
      why_not_.append("no function ").append(name);
  }
  /// Returns the first thing that was missing; empty: nothing.
  const std::string& why_not() const {
    return why_not_;
  }

private:
  void* file_;
  std::string why_not_;
};

} // namespace troupe::net
