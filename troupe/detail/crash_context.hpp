// Records which user code a thread is running, so that a crash report can name
// it: a crash does not unwind the stack.
#pragma once

#include <string_view>

namespace troupe {

/// Names the user code that this thread runs during the object's lifetime; one
/// per thread at a time.
class CrashContext {
public:
  explicit CrashContext(
    std::string_view what); ///< "user-defined actor checker"
  ~CrashContext();
  CrashContext(const CrashContext&) = delete;
  CrashContext& operator=(const CrashContext&) = delete;

  /// Returns the text of this thread; empty: it runs no user code.
  static std::string_view now();
};

/// Start of the line that a crash writes to stderr.
inline constexpr std::string_view crash_prefix = "crashed in ";
/// Installs handlers that report a crash in user code on stderr. Existing
/// handlers, of a sanitizer or the user, are kept.
void tell_work_on_crash();

} // namespace troupe
