#include "net/line_programs.hpp"

#include "config/awake_clock.hpp"
#include "config/error.hpp"
#include "net/defaults.hpp"
#include "net/wake_event.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <deque>
#include <fstream>

namespace troupe::net {

namespace {

using LineClock = AwakeClock;

void close_end(int& descriptor) {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
}

std::vector<ChildLimit> program_limits() {
  return {{RLIMIT_CORE, 0},
          {RLIMIT_DATA, kProgramMemoryBytes},
          {RLIMIT_FSIZE, kProgramFileBytes}};
}

} // namespace

struct LinePrograms::Process {
  std::uint32_t number = 0;
  pid_t pid = -1; ///< -1: not running
  int input = -1; ///< our end of its stdin
  int output = -1;
  bool ready = false;
  std::uintmax_t log_begin = 0; ///< of its own words in its log
  std::string unsent;
  std::string unread;           ///< an unfinished answer
  std::deque<std::size_t> owed; ///< oldest first
  LineClock::time_point heard;  ///< its last answer, or when it began to owe

  bool waits() const {
    return pid > 0 && (!ready || !owed.empty());
  }
};

// -- processes ---------------------------------------------------------------

LinePrograms::LinePrograms(LineProgramOptions options)
  : options_(std::move(options)),
    pool_([this](const ChildExit& exit) {
      const std::lock_guard lock(mutex_);
      exits_[exit.pid] = exit;
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
  process.input = in[1];
  process.output = out[0];
  ::fcntl(process.input, F_SETFL, O_NONBLOCK);
  ::fcntl(process.output, F_SETFL, O_NONBLOCK);
  ChildSpec spec;
  spec.name = options_.name + " " + std::to_string(process.number);
  spec.argv = options_.argv;
  spec.input = in[0];
  spec.output = out[1];
  spec.limits = program_limits();
  if (!options_.log_folder.empty())
    spec.output_file = log_file(process);
  std::error_code none; // no file yet
  const auto log_bytes = std::filesystem::file_size(spec.output_file, none);
  process.log_begin = none ? 0 : log_bytes;
  try {
    process.pid = pool_.start(std::move(spec));
  } catch (const FailureError& error) {
    ::close(in[0]);
    ::close(out[1]);
    close(process);
    refuse(error.failure().what);
  }
  ::close(in[0]);
  ::close(out[1]);
  process.ready = options_.ready_line.empty();
  process.heard = LineClock::now();
}

void LinePrograms::close(Process& process) {
  if (process.pid > 0)
    pool_.signal(process.pid, SIGKILL);
  process.pid = -1;
  close_end(process.input);
  close_end(process.output);
  process.unsent.clear();
  process.unread.clear();
}

/// How it ended; one that only closed its output is killed after a moment.
std::string LinePrograms::end_of(Process& process) {
  std::unique_lock lock(mutex_);
  const auto known = [&] { return exits_.contains(process.pid); };
  if (!ended_.wait_for(lock, kProgramEndsWithin, known)) {
    pool_.signal(process.pid, SIGKILL);
    ended_.wait(lock, known);
    return "closed its output";
  }
  const auto exit = exits_.extract(process.pid);
  return "ended with " + to_string(exit.mapped());
}

/// The last line on its stderr, as ": TEXT".
std::string LinePrograms::last_words(const Process& process) const {
  if (options_.log_folder.empty())
    return "";
  std::ifstream log(log_file(process));
  log.seekg(static_cast<std::streamoff>(process.log_begin));
  std::string last;
  for (std::string line; std::getline(log, line);)
    if (line.find_first_not_of(" \t\r") != line.npos)
      last = line;
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

  /// Lines that came; false once all are settled and no more came.
  bool take_lines();
  void hand_out();
  void wait();
  void give_up_silent();
  /// Nobody owes this round's lines any more.
  void drop();

private:
  Process* least_busy();
  void write(Process& process);
  void read(Process& process);
  void take(Process& process, std::string_view line);
  void settle(std::size_t line);
  void lose(Process& process, LineLoss loss, const std::string& why);
  void ended(Process& process);

  LinePrograms& programs_;
  const LineSource& source_;
  const LineHandler& handler_;
  std::vector<std::string> lines_; ///< settled ones are empty
  std::size_t num_settled_ = 0;
  std::deque<std::size_t> waiting_;
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
    if (starting || process->owed.size() >= programs_.options_.window)
      continue;
    if (best == nullptr || process->owed.size() < best->owed.size())
      best = process.get();
  }
  return best;
}

void LinePrograms::Round::hand_out() {
  // A line is counted against one that is starting, or all would be started.
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
    if (process->owed.empty())
      process->heard = LineClock::now();
    process->owed.push_back(line);
    process->unsent += lines_[line] + "\n";
  }
}

void LinePrograms::Round::wait() {
  std::vector<pollfd> ready;
  std::vector<std::pair<Process*, bool>> whose; // and whether to write
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
    process.unsent.clear(); // it reads no more; its end will show
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
  if (process.unread.size() > kMaxAnswerBytes)
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
  const auto owed
    = settles ? std::ranges::find(process.owed, *settles) : process.owed.end();
  if (owed == process.owed.end())
    return handler_.on_stray(line);
  process.owed.erase(owed);
  process.heard = LineClock::now();
  programs_.ever_answered_ = true;
  programs_.ends_without_answer_ = 0;
  settle(*settles);
  handler_.on_answer(*settles, line);
}

/// The oldest line it owed is given up, the others are handed out again.
void LinePrograms::Round::lose(Process& process, LineLoss loss,
                               const std::string& why) {
  if (process.owed.empty())
    return;
  const auto line = process.owed.front();
  process.owed.pop_front();
  waiting_.insert(waiting_.begin(), process.owed.begin(), process.owed.end());
  process.owed.clear();
  settle(line);
  handler_.on_loss(line, loss, why);
}

void LinePrograms::Round::ended(Process& process) {
  const auto how = programs_.end_of(process);
  const auto words = programs_.last_words(process);
  programs_.close(process);
  ++programs_.ends_without_answer_;
  const bool again_and_again = programs_.ends_without_answer_ >= kProgramStarts;
  if (programs_.ever_answered_ ? again_and_again && !process.ready
                               : again_and_again || !process.ready)
    programs_.refuse(how + " before it answered anything" + words);
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
    if (!process->owed.empty()) {
      programs_.close(*process);
      process->owed.clear();
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
