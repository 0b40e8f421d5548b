#include "runtime/metrics/metrics_command.hpp"

#include "config/base/error.hpp"
#include "config/base/log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::runtime {

MetricsCommand::MetricsCommand(const std::string& command)
  : MetricsCommand(MetricsProgram{.name = "metrics.command",
                                  .argv = {"/bin/sh", "-c", command}}) {}

MetricsCommand::MetricsCommand(MetricsProgram program)
  : name_(std::move(program.name)),
    grace_(program.grace) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw FailureError{
      {.code = Errc::io,
       .who = name_,
       .what = fmt::format("no pipe: {}", std::strerror(errno)),
       .cause = ""}};
  input_ = ends[1];
  ::fcntl(input_, F_SETFL, O_NONBLOCK);
  net::ChildSpec shell;
  shell.name = name_;
  shell.argv = std::move(program.argv);
  shell.trust = net::Trust::users;
  shell.input = ends[0];
  pool_.start(std::move(shell));
  ::close(ends[0]);
}

MetricsCommand::~MetricsCommand() {
  if (input_ >= 0)
    ::close(input_);
  if (!pool_.wait_all(grace_)) // then the pool kills it
    log::runtime.warn(
      fmt::format("{} was still running {:g} s after its last line and was "
                  "killed: numbers of this run may be missing there",
                  name_, std::chrono::duration<double>(grace_).count()));
  if (dropped_ > 0)
    log::runtime.warn(fmt::format("{} missed {} lines, which it did not read "
                                  "in time",
                                  name_, dropped_));
}

void MetricsCommand::write(std::string_view line) {
  if (input_ < 0)
    return;
  std::string text{line};
  text += '\n';
  // a line shorter than PIPE_BUF is written completely or not at all
  if (::write(input_, text.data(), text.size())
      == static_cast<ssize_t>(text.size()))
    return;
  if (errno == EAGAIN)
    ++dropped_;
  else
    give_up(errno);
}

void MetricsCommand::give_up(int error) {
  log::runtime.warn(
    fmt::format("{} reads no more: {}", name_, std::strerror(error)));
  ::close(input_);
  input_ = -1;
}

} // namespace troupe::runtime
