// The three kinds of error (docs/architecture.md, "errors"): a broken invariant
// throws `InvariantError` with file:line (TROUPE_CHECK); a user's mistake is a
// `ConfigError` (exit 2) or a `PlanError` (exit 3), caught only in `main`; a
// failure of the environment is a value, `Failure`, that keeps its root cause.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace troupe {

/// Exit codes of every command.
enum class ExitCode : int {
  done = 0,
  failed = 1,
  wrong_input = 2,
  plan_cannot_run = 3,
  stopped = 75,
  interrupted = 130,
};

/// A place in a user's file; `line` 0 means the file as a whole.
struct Place {
  std::string file; ///< as the user named it, or "command line"
  int line = 0;
};

/// A user's mistake: wrong settings, names, types, input files. Exit code 2.
/// what() is the whole line "FILE:LINE: path: expected ..., got ...; try ...".
class ConfigError : public std::runtime_error {
public:
  struct Parts {
    Place place;
    std::string path;     ///< dotted key, or the field of a row; may be empty
    std::string expected; ///< "a number > 0"
    std::string got;      ///< "'ten'"
    std::string hint;     ///< what to try; may be empty
  };
  explicit ConfigError(Parts parts);
  /// Creates an error with a free sentence about `place`, for mistakes without
  /// expected/got.
  ConfigError(Place place, const std::string& sentence);
  const Parts& parts() const noexcept {
    return parts_;
  }

private:
  Parts parts_; ///< `expected` is empty for the free-sentence form
};

/// A plan that cannot run: arithmetic, device count, memory. Exit code 3.
class PlanError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
  /// Formats its line like a `ConfigError`.
  explicit PlanError(const ConfigError::Parts& parts);
};

/// Returns "expected ..., got ...; try ...", the part of a line after its path.
std::string expectation(const std::string& expected, const std::string& got,
                        const std::string& hint = {});
/// Returns "FILE:LINE: ", "FILE: " for a whole file, "" for no file.
std::string to_string(const Place& place);

/// A violated invariant of Troupe; what() starts with file:line.
class InvariantError : public std::logic_error {
public:
  using std::logic_error::logic_error;
};

/// Kinds of failures of the environment; each has one sentence.
enum class Errc : std::uint8_t {
  ok = 0,
  peer_lost, ///< a process's connection closed or it stopped responding
  deadline,  ///< no progress within the wait's deadline
  aborted,   ///< another process failed first and stopped this one
  stale,     ///< message of an older incarnation or a wrong version
  refused,   ///< wrong token, wrong binary, unknown peer
  io,        ///< disk full, file unreadable, socket error
  out_of_memory,
  numerics,  ///< non-finite loss or gradient where none is allowed
  bad_input, ///< a user's mistake that only a worker could detect
  bug,       ///< a broken invariant in another process
};
const char* to_string(Errc code) noexcept;
/// Returns one sentence for users.
const char* explain(Errc code) noexcept;

/// A failure of the environment: who, what and the root cause, as data.
struct Failure {
  Errc code = Errc::ok;
  std::string who;   ///< "worker 1 (pid 4711)", "shard actor@0-3/2"
  std::string what;  ///< one sentence
  std::string cause; ///< root cause, one sentence; empty: `what`
};
std::string to_string(const Failure& failure);

/// Carries a `Failure` through code that can only throw (device threads).
class FailureError : public std::runtime_error {
public:
  explicit FailureError(Failure failure);
  const Failure& failure() const noexcept {
    return failure_;
  }

private:
  Failure failure_;
};

namespace internal {
[[noreturn]] void check_failed(const char* file, int line, const char* text,
                               const std::string& message);
} // namespace internal

} // namespace troupe

/// Throws InvariantError with file:line unless `condition` holds.
#define TROUPE_CHECK(condition, message)                                       \
  do {                                                                         \
    if (!(condition)) [[unlikely]]                                             \
      ::troupe::internal::check_failed(__FILE__, __LINE__, #condition,         \
                                       message);                               \
  } while (false)
