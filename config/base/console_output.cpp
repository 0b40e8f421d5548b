#include "config/base/console_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace troupe {

namespace {

/// The same pipe or terminal, whose writes do not wait here: whoever shares the
/// descriptor would see a change of its flags. Files, which have an offset of
/// their own, and what cannot be opened again stay as they are.
class OpenedAgain {
public:
  explicit OpenedAgain(int descriptor) : descriptor_(descriptor) {
    struct stat what {};
    if (::fstat(descriptor, &what) != 0
        || (!S_ISFIFO(what.st_mode) && ::isatty(descriptor) != 1))
      return;
    const auto path = fmt::format("/proc/self/fd/{}", descriptor);
    own_ = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  }
  ~OpenedAgain() {
    if (never_waits())
      ::close(own_);
  }
  OpenedAgain(const OpenedAgain&) = delete;
  OpenedAgain& operator=(const OpenedAgain&) = delete;

  bool never_waits() const {
    return own_ >= 0;
  }
  int get() const {
    return never_waits() ? own_ : descriptor_;
  }

private:
  int descriptor_;
  int own_ = -1;
};

/// Returns whether a write of up to PIPE_BUF bytes would not wait.
bool has_room(int descriptor, int wait_ms) {
  pollfd room{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&room, 1, wait_ms) > 0;
}

} // namespace

ConsoleOutput::ConsoleOutput(int descriptor, std::size_t limit_bytes)
  : descriptor_(descriptor),
    limit_bytes_(limit_bytes) {}

ConsoleOutput::~ConsoleOutput() {
  wait(std::chrono::seconds(1));
}

void ConsoleOutput::write(std::string_view text) {
  if (text.empty())
    return;
  const std::lock_guard lock(mutex_);
  kept_.emplace_back(text);
  kept_bytes_ += text.size();
  if (!write_kept(/*wait_ms=*/0) && kept_bytes_ > limit_bytes_)
    leave_out();
}

bool ConsoleOutput::wait(std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + limit;
  const std::lock_guard lock(mutex_);
  for (;;) {
    const auto left
      = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (write_kept(static_cast<int>(std::max<long>(0, left.count()))))
      return true;
    if (left.count() <= 0)
      return false;
  }
}

/// Writes as long as there is room, for which only the first write waits.
/// Returns whether nothing is left.
bool ConsoleOutput::write_kept(int wait_ms) {
  const OpenedAgain to(descriptor_); // it may be another than last time
  while (!kept_.empty()) {
    const bool may_write
      = (to.never_waits() && wait_ms == 0) || has_room(to.get(), wait_ms);
    wait_ms = 0;
    if (!may_write || !write_front(to.get()))
      break;
  }
  return kept_.empty();
}

/// Writes of the first text what fits for certain. Returns whether to go on; a
/// reader that is gone takes nothing more.
bool ConsoleOutput::write_front(int descriptor) {
  std::string& first = kept_.front();
  if (left_out_ > 0 && !is_cut_) {
    const auto said = fmt::format(
      "({} lines were left out: nobody read this output)\n", left_out_);
    kept_bytes_ += said.size();
    left_out_ = 0;
    first.insert(0, said);
  }
  const auto most = std::min<std::size_t>(first.size(), PIPE_BUF);
  const auto written = ::write(descriptor, first.data(), most);
  if (written < 0 && errno == EINTR)
    return true;
  if (written < 0 && errno == EAGAIN)
    return false;
  if (written < 0) {
    kept_.clear();
    kept_bytes_ = 0;
    is_cut_ = false;
    return false;
  }
  const auto taken = static_cast<std::size_t>(written);
  kept_bytes_ -= taken;
  is_cut_ = taken < first.size();
  if (is_cut_)
    first.erase(0, taken);
  else
    kept_.pop_front();
  return true;
}

/// Leaves out the oldest whole texts until half of the limit is free.
void ConsoleOutput::leave_out() {
  const std::size_t keep = is_cut_ ? 1 : 0;
  while (kept_bytes_ > limit_bytes_ / 2 && kept_.size() > keep + 1) {
    const auto oldest = kept_.begin() + static_cast<std::ptrdiff_t>(keep);
    kept_bytes_ -= oldest->size();
    kept_.erase(oldest);
    ++left_out_;
  }
}

} // namespace troupe
