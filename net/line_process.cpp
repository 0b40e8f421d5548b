#include "net/line_process.hpp"

#include "config/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace troupe::net {

namespace {

void make_pipe(int& read_end, int& write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw FailureError{
      {.code = Errc::io,
       .who = "process",
       .what = fmt::format("no pipe: {}", std::strerror(errno)),
       .cause = ""}};
  read_end = ends[0];
  write_end = ends[1];
}

/// Leaves nothing to read.
void drain(int descriptor) {
  pollfd any{descriptor, POLLIN, 0};
  char bytes[4096];
  while (::poll(&any, 1, 0) > 0
         && ::read(descriptor, bytes, sizeof bytes) > 0) {
  }
}

} // namespace

LineProcess::LineProcess(LineProcessOptions options)
  : options_(std::move(options)),
    wake_(::eventfd(0, EFD_CLOEXEC)) {
  make_pipe(to_.read_end, to_.write_end);
  make_pipe(from_.read_end, from_.write_end);
  children_ = std::make_unique<ChildPool>([this](const ChildExit& exit) {
    ended_pid_ = exit.pid;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(wake_, &one, sizeof one);
  });
}

LineProcess::~LineProcess() {
  children_.reset(); // kills the child
  for (const int end :
       {to_.read_end, to_.write_end, from_.read_end, from_.write_end, wake_})
    ::close(end);
}

void LineProcess::start() {
  for (const int end : {to_.read_end, from_.read_end})
    drain(end);
  unread_.clear();
  // The child opens its ends by name, so that no other child inherits them.
  const auto own = fmt::format("/proc/{}/fd/", ::getpid());
  pid_ = children_->start(
    {.name = options_.command,
     .argv = {"/bin/sh", "-c",
              fmt::format("exec {} < {}{} > {}{}", options_.command, own,
                          to_.read_end, own, from_.write_end)},
     .environment = {},
     .working_folder = {},
     .output_file = {}});
}

void LineProcess::stop() {
  if (pid_ != 0) {
    children_->signal(pid_, SIGKILL);
    children_->wait_all(std::chrono::milliseconds(2000));
  }
  pid_ = 0;
}

void LineProcess::fail(bool late, const std::string& what) {
  stop();
  throw FailureError{{.code = late ? Errc::deadline : Errc::bad_input,
                      .who = options_.command,
                      .what = what,
                      .cause = ""}};
}

/// True once the descriptor is ready; false when it is too late or the child
/// ended.
bool LineProcess::wait_for(int descriptor, short events,
                           std::chrono::steady_clock::time_point until) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
    pollfd both[] = {{descriptor, events, 0}, {wake_, POLLIN, 0}};
    if (left.count() <= 0
        || ::poll(both, 2, static_cast<int>(left.count())) <= 0)
      return false;
    if (both[0].revents != 0)
      return true;
    std::uint64_t ends = 0; // perhaps of a child before this one
    [[maybe_unused]] const auto n = ::read(wake_, &ends, sizeof ends);
    if (ended())
      return false;
  }
}

void LineProcess::write_line(const std::string& line) {
  const std::string text = line + "\n";
  const auto until = std::chrono::steady_clock::now() + options_.deadline;
  std::size_t written = 0;
  while (written < text.size()) {
    if (!wait_for(to_.write_end, POLLOUT, until))
      fail(!ended(), ended() ? "the program ended"
                             : "the program reads no input in time");
    // a pipe takes PIPE_BUF bytes whole once it has room
    const auto n = ::write(to_.write_end, text.data() + written,
                           std::min<std::size_t>(text.size() - written, 4096));
    if (n < 0)
      fail(/*late=*/false, std::strerror(errno));
    written += static_cast<std::size_t>(n);
  }
}

std::string LineProcess::read_line() {
  const auto until = std::chrono::steady_clock::now() + options_.deadline;
  while (true) {
    if (const auto end = unread_.find('\n'); end != unread_.npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (!wait_for(from_.read_end, POLLIN, until))
      fail(!ended(), ended() ? "the program ended without an answer"
                             : fmt::format("no answer within {} ms",
                                           options_.deadline.count()));
    char bytes[4096];
    const auto n = ::read(from_.read_end, bytes, sizeof bytes);
    if (n > 0)
      unread_.append(bytes, static_cast<std::size_t>(n));
  }
}

std::string LineProcess::ask(const std::string& line) {
  if (line.find('\n') != line.npos)
    throw FailureError{{.code = Errc::bad_input,
                        .who = options_.command,
                        .what = "a line to a program must hold no line break",
                        .cause = ""}};
  if (pid_ == 0 || ended())
    start();
  write_line(line);
  return read_line();
}

} // namespace troupe::net
