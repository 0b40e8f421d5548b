// What code of the user's a thread runs: the last words of a process that it
// brings down, since a crash unwinds nothing.
#pragma once

#include <string_view>

namespace troupe {

/// While it lives; one a thread at a time.
class AtWork {
public:
  explicit AtWork(std::string_view what); ///< "own actor checker"
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

  /// Of this thread; empty: it runs our code.
  static std::string_view now();
};

/// How the line begins that a crash leaves on stderr.
inline constexpr std::string_view crash_words = "crashed in ";
/// A crash of this process in the user's code says so first. Handlers that are
/// there, of a sanitizer or the user, stay.
void tell_work_on_crash();

} // namespace troupe
