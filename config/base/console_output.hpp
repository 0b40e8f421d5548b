// Text to a terminal or pipe that its reader may leave full: Ctrl-S, a pager, a
// stalled ssh. A run must not wait for that. Lines that find no room are kept;
// of more than a limit the oldest are left out, and the reader is told so.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

namespace troupe {

class ConsoleOutput {
public:
  static constexpr std::size_t default_limit_bytes = std::size_t{1} << 18;

  /// Writes to `descriptor`, which stays the caller's.
  explicit ConsoleOutput(int descriptor,
                         std::size_t limit_bytes = default_limit_bytes);
  /// Waits a second for the reader of what is left.
  ~ConsoleOutput();
  ConsoleOutput(const ConsoleOutput&) = delete;
  ConsoleOutput& operator=(const ConsoleOutput&) = delete;

  /// Writes text, or keeps it for the next call. Thread-safe.
  void write(std::string_view text);
  /// Writes what is left, for at most `limit`. Returns whether all is written.
  bool wait(std::chrono::milliseconds limit);

private:
  bool write_kept(int wait_ms);
  bool write_front(int descriptor);
  void leave_out();

  int descriptor_;
  std::size_t limit_bytes_;
  std::mutex mutex_;
  std::deque<std::string> kept_; ///< in order; the first may be cut
  std::size_t kept_bytes_ = 0;
  std::size_t left_out_ = 0; ///< texts since the last one that was written
  bool is_cut_ = false;      ///< a part of the first one is written
};

} // namespace troupe
