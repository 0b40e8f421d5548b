#include "net/child_programs/line_programs.hpp"

#include "config/base/awake_clock.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "net/base/defaults.hpp"
#include "net/base/wake_event.hpp"
#include "net/child_programs/child_log.hpp"
#include "net/child_programs/line_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <set>

namespace troupe::net {

namespace {

using LineClock = AwakeClock;

void close_end(int& descriptor) {
  const Descriptor closed(std::exchange(descriptor, -1));
}

std::vector<ChildLimit> program_limits() {
  return {{RLIMIT_CORE, 0},
          {RLIMIT_DATA, kProgramMemoryBytes},
          {RLIMIT_FSIZE, kProgramFileBytes}};
}

} // namespace

// -- processes ---------------------------------------------------------------

LinePrograms::LinePrograms(LineProgramOptions options)
  : options_(std::move(options)),
    pool_([this](const ChildExit& exit) {
      const std::lock_guard lock(mutex_);
      const auto end = ends_.find(exit.number);
      if (end == ends_.end())
        return; // closed by us
      end->second = exit;
      ended_.notify_all();
    }) {
  for (std::uint32_t i = 0; i < options_.workers; ++i) {
    processes_.push_back(std::make_unique<Process>());
    processes_.back()->number = i;
  }
}

LinePrograms::~LinePrograms() {
  for (auto& process : processes_) {
    close_end(process->input);
    close_end(process->output);
  }
}

void LinePrograms::refuse(const std::string& what) const {
  throw FailureError(
    {.code = Errc::bad_input, .who = options_.name, .what = what, .cause = ""});
}

std::filesystem::path LinePrograms::log_file(const Process& process) const {
  return options_.log_folder
         / (options_.name + "_" + std::to_string(process.number) + ".log");
}

void LinePrograms::start(Process& process) {
  int in[2];
  int out[2];
  if (::pipe2(in, O_CLOEXEC) != 0)
    refuse(std::string("no pipe: ") + std::strerror(errno));
  if (::pipe2(out, O_CLOEXEC) != 0) {
    ::close(in[0]);
    ::close(in[1]);
    refuse(std::string("no pipe: ") + std::strerror(errno));
  }
  const Descriptor program_input(in[0]), program_output(out[1]);
  process.input = in[1];
  process.output = out[0];
  ::fcntl(process.input, F_SETFL, O_NONBLOCK);
  ::fcntl(process.output, F_SETFL, O_NONBLOCK);
  ChildSpec spec;
  spec.name = options_.name + " " + std::to_string(process.number);
  spec.number = process.start = ++num_starts_;
  spec.argv = options_.argv;
  spec.input = in[0];
  spec.output = out[1];
  spec.limits = program_limits();
  spec.trust = Trust::users;
  if (!options_.log_folder.empty())
    log::renew_log(spec.output_file = log_file(process));
  process.log_begin = size_of_log(spec.output_file);
  {
    const std::lock_guard lock(mutex_);
    ends_[process.start] = std::nullopt;
  }
  try {
    process.pid = pool_.start(std::move(spec));
  } catch (const FailureError& error) {
    close(process);
    refuse(error.failure().what);
  }
  process.ready = options_.ready_line.empty();
  process.heard = LineClock::now();
}

void LinePrograms::close(Process& process) {
  if (process.pid > 0)
    pool_.signal(process.pid, SIGKILL);
  process.pid = -1;
  {
    const std::lock_guard lock(mutex_);
    ends_.erase(process.start);
  }
  close_end(process.input);
  close_end(process.output);
  process.unsent.clear();
  process.unread.clear();
}

/// Returns how it ended; nothing if it only closed its output.
std::optional<ChildExit> LinePrograms::end_of(Process& process) {
  std::unique_lock lock(mutex_);
  const auto& end = ends_.at(process.start);
  ended_.wait_for(lock, kProgramEndsWithin, [&] { return end.has_value(); });
  return end;
}

/// Returns the last line on its stderr, as ": TEXT".
std::string LinePrograms::crash_report(const Process& process) const {
  if (options_.log_folder.empty())
    return "";
  const auto last = last_line_of(log_file(process), process.log_begin);
  return last.empty() ? "" : ": " + last;
}

// -- one round of lines ------------------------------------------------------

class LinePrograms::Round {
public:
  Round(LinePrograms& programs, const LineSource& source,
        const LineHandler& handler)
    : programs_(programs),
      source_(source),
      handler_(handler) {}

  /// Takes new lines; returns false once all are settled and no more come.
  bool take_lines();
  void hand_out();
  void wait();
  void give_up_silent();
  /// Closes the processes that still have outstanding lines of this round.
  void drop();

private:
  Process* least_busy();
  void write(Process& process);
  void read(Process& process);
  void take(Process& process, std::string_view line);
  void settle(std::size_t line);
  void lose(Process& process, LineLoss loss, const std::string& why);
  bool ask_again(Process& process);
  void ended(Process& process);

  LinePrograms& programs_;
  const LineSource& source_;
  const LineHandler& handler_;
  std::vector<std::string> lines_; ///< settled ones are empty
  std::size_t num_settled_ = 0;
  std::deque<std::size_t> waiting_;
  std::set<std::size_t> asked_again_; ///< after a kill
};

bool LinePrograms::Round::take_lines() {
  if (source_.more != nullptr)
    source_.more->clear();
  for (auto& line : source_.take()) {
    waiting_.push_back(lines_.size());
    lines_.push_back(std::move(line));
  }
  return num_settled_ < lines_.size();
}

void LinePrograms::Round::settle(std::size_t line) {
  lines_[line] = {};
  ++num_settled_;
}

LinePrograms::Process* LinePrograms::Round::least_busy() {
  Process* best = nullptr;
  for (auto& process : programs_.processes_) {
    const bool starting = process->pid > 0 && !process->ready;
    if (starting || process->outstanding.size() >= programs_.options_.window)
      continue;
    if (best == nullptr
        || process->outstanding.size() < best->outstanding.size())
      best = process.get();
  }
  return best;
}

void LinePrograms::Round::hand_out() {
  // one waiting line per starting process, or all would be started
  std::size_t starting = 0;
  for (const auto& process : programs_.processes_)
    starting += process->pid > 0 && !process->ready ? 1 : 0;
  while (waiting_.size() > starting) {
    Process* process = least_busy();
    if (process == nullptr)
      return;
    if (process->pid < 0) {
      programs_.start(*process);
      if (!process->ready) {
        ++starting;
        continue;
      }
    }
    const auto line = waiting_.front();
    waiting_.pop_front();
    if (process->outstanding.empty())
      process->heard = LineClock::now();
    process->outstanding.push_back(line);
    process->unsent += lines_[line] + "\n";
  }
}

void LinePrograms::Round::wait() {
  std::vector<pollfd> ready;
  std::vector<std::pair<Process*, bool>> whose; // process, and true for writing
  for (auto& process : programs_.processes_) {
    if (process->pid < 0)
      continue;
    ready.push_back({process->output, POLLIN, 0});
    whose.emplace_back(process.get(), false);
    if (process->unsent.empty())
      continue;
    ready.push_back({process->input, POLLOUT, 0});
    whose.emplace_back(process.get(), true);
  }
  if (source_.more != nullptr)
    ready.push_back({source_.more->descriptor(), POLLIN, 0});
  ::poll(ready.data(), ready.size(), static_cast<int>(kLivenessSlice.count()));
  for (std::size_t i = 0; i < whose.size(); ++i) {
    auto& [process, writes] = whose[i];
    if (ready[i].revents == 0 || process->pid < 0)
      continue;
    writes ? write(*process) : read(*process);
  }
}

void LinePrograms::Round::write(Process& process) {
  const auto written
    = ::write(process.input, process.unsent.data(), process.unsent.size());
  if (written > 0)
    process.unsent.erase(0, static_cast<std::size_t>(written));
  else if (errno != EAGAIN && errno != EINTR)
    process.unsent.clear(); // it no longer reads; its exit will be noticed
}

void LinePrograms::Round::read(Process& process) {
  std::array<char, 1 << 16> bytes;
  const auto got = ::read(process.output, bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (got <= 0)
    return ended(process);
  process.unread.append(bytes.data(), static_cast<std::size_t>(got));
  std::size_t begin = 0;
  for (auto end = process.unread.find('\n'); end != process.unread.npos;
       end = process.unread.find('\n', begin)) {
    take(process, std::string_view(process.unread).substr(begin, end - begin));
    begin = end + 1;
  }
  process.unread.erase(0, begin);
  if (process.unread.size() > kMaxReplyBytes)
    ended(process);
}

void LinePrograms::Round::take(Process& process, std::string_view line) {
  if (line.empty())
    return;
  if (!process.ready) {
    process.ready = line == programs_.options_.ready_line;
    return;
  }
  const auto settles = handler_.line_of(line);
  const auto outstanding = settles
                             ? std::ranges::find(process.outstanding, *settles)
                             : process.outstanding.end();
  if (outstanding == process.outstanding.end())
    return handler_.on_unmatched(line);
  process.outstanding.erase(outstanding);
  process.heard = LineClock::now();
  programs_.ever_answered_ = true;
  programs_.ends_without_reply_ = 0;
  settle(*settles);
  handler_.on_reply(*settles, line);
}

/// Gives up its oldest outstanding line and redistributes the others.
void LinePrograms::Round::lose(Process& process, LineLoss loss,
                               const std::string& why) {
  if (process.outstanding.empty())
    return;
  const auto line = process.outstanding.front();
  process.outstanding.pop_front();
  waiting_.insert(waiting_.begin(), process.outstanding.begin(),
                  process.outstanding.end());
  process.outstanding.clear();
  settle(line);
  handler_.on_loss(line, loss, why);
}

/// Redistributes its outstanding lines, unless the oldest was the oldest of
/// another process that was killed: then it may be the cause, as of memory that
/// runs out.
bool LinePrograms::Round::ask_again(Process& process) {
  if (process.outstanding.empty()
      || !asked_again_.insert(process.outstanding.front()).second)
    return false;
  waiting_.insert(waiting_.begin(), process.outstanding.begin(),
                  process.outstanding.end());
  process.outstanding.clear();
  return true;
}

void LinePrograms::Round::ended(Process& process) {
  const auto end = programs_.end_of(process);
  const auto how = end ? "ended with " + to_string(*end) : "closed its output";
  const auto words = programs_.crash_report(process);
  programs_.close(process);
  ++programs_.ends_without_reply_;
  const bool again = programs_.ends_without_reply_ >= kProgramStarts;
  const bool killed = end && end->signal == SIGKILL; // no mistake of its own
  if (programs_.ever_answered_ ? again && !process.ready
                               : again || (!process.ready && !killed))
    programs_.refuse(how + " before it answered anything" + words);
  if (killed && ask_again(process))
    return;
  lose(process, LineLoss::failed, "the program " + how + words);
}

void LinePrograms::Round::give_up_silent() {
  const auto now = LineClock::now();
  for (auto& process : programs_.processes_) {
    if (!process->waits())
      continue;
    const std::chrono::duration<double> silent = now - process->heard;
    if (!process->ready && silent > kProgramReadyWithin) {
      programs_.close(*process);
      programs_.refuse(fmt::format("it was not ready after {} s",
                                   kProgramReadyWithin.count()));
    }
    if (!process->ready || silent <= programs_.options_.deadline.silence)
      continue;
    programs_.close(*process);
    lose(*process, LineLoss::late, programs_.options_.deadline.text());
  }
}

void LinePrograms::Round::drop() {
  for (auto& process : programs_.processes_)
    if (!process->outstanding.empty()) {
      programs_.close(*process);
      process->outstanding.clear();
    }
}

void LinePrograms::run(const LineSource& source, const LineHandler& handler,
                       const std::atomic<bool>* stop) {
  Round round(*this, source, handler);
  try {
    while (round.take_lines()) {
      if (stop != nullptr && *stop)
        throw FailureError({.code = Errc::aborted,
                            .who = options_.name,
                            .what = "the run ended while it scored",
                            .cause = ""});
      round.hand_out();
      round.wait();
      round.give_up_silent();
    }
  } catch (...) {
    round.drop();
    throw;
  }
}

} // namespace troupe::net
