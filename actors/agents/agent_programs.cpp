#include "actors/agents/agent_programs.hpp"

#include "actors/protocol/ask.hpp"
#include "config/base/log.hpp"
#include "net/base/defaults.hpp"
#include "net/child_programs/child_log.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace troupe::actors {

namespace {

/// Longest wait between two looks at deadlines.
constexpr std::chrono::milliseconds look_again{100};
/// Part of a program's output that is read: its end.
constexpr off_t most_output_bytes = 1 << 20;

net::Descriptor new_output() {
  net::Descriptor memory(::memfd_create("output", MFD_CLOEXEC));
  if (memory.get() < 0)
    throw FailureError(
      {.code = Errc::io,
       .who = "output of an agent",
       .what = std::string("no memory: ") + std::strerror(errno),
       .cause = ""});
  return memory;
}

std::string last_of_output(const net::Descriptor& output) {
  struct stat info {};
  if (::fstat(output.get(), &info) != 0)
    return "";
  const off_t size = std::min<off_t>(info.st_size, most_output_bytes);
  std::string text(static_cast<std::size_t>(size), '\0');
  const auto got
    = ::pread(output.get(), text.data(), text.size(), info.st_size - size);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

/// Returns our variable with the loopback address added: a proxy would not
/// reach it.
std::pair<std::string, std::string> without_proxy(const char* name) {
  const char* old = std::getenv(name); // NOLINT: nobody sets it meanwhile
  return {name, (old != nullptr ? std::string(old) + "," : std::string())
                  + "127.0.0.1"};
}

std::vector<std::string> words_of(const AgentProgramOptions& options) {
  if (options.sandbox.empty())
    return {"/bin/sh", "-c", options.command};
  return {"/bin/sh",      "-c",      "exec " + options.sandbox + " \"$@\"",
          "sh",           "/bin/sh", "-c",
          options.command};
}

} // namespace

void EndedPrograms::put(const net::ChildExit& exit) {
  const std::lock_guard lock(mutex_);
  exits_.push_back(exit);
  came_.notify_all();
}

void EndedPrograms::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  came_.notify_all();
}

std::vector<net::ChildExit> EndedPrograms::take() {
  std::unique_lock lock(mutex_);
  came_.wait_for(lock, look_again, [&] { return !exits_.empty() || stopped_; });
  return std::exchange(exits_, {});
}

bool EndedPrograms::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

AgentPrograms::AgentPrograms(AgentHost& host, AgentProgramOptions options,
                             std::vector<AgentTask> tasks, Events events)
  : host_(host),
    options_(std::move(options)),
    tasks_(std::move(tasks)),
    events_(std::move(events)) {
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    waiting_.push_back({.task = i});
  for (std::uint32_t slot = options_.concurrency; slot > 0; --slot)
    free_slots_.push_back(slot - 1);
  thread_ = std::thread([this] { run(); });
}

AgentPrograms::~AgentPrograms() {
  exits_.stop();
  thread_.join();
}

void AgentPrograms::run() {
  std::optional<Failure> failure;
  try {
    net::ChildPool pool(
      [this](const net::ChildExit& exit) { exits_.put(exit); });
    run_all(pool);
  } catch (const std::exception& error) {
    failure = to_failure(error, "agents.command");
  }
  for (const auto& [number, running] : running_)
    host_.dismiss(running.key);
  events_.on_all_ended(std::move(failure));
}

void AgentPrograms::run_all(net::ChildPool& pool) {
  start_waiting(pool);
  while (!running_.empty() || !waiting_.empty()) {
    for (const auto& exit : exits_.take())
      ended(exit);
    if (exits_.stopped())
      return;
    kill_late(pool);
    count_progress();
    start_waiting(pool);
  }
}

/// Programs that think are at work; a generator that owes them turns shows its
/// own progress.
void AgentPrograms::count_progress() const {
  const auto waits = [&](const auto& entry) {
    return tasks_[entry.second.attempt.task].session->waits_for_model();
  };
  if (options_.progress != nullptr && std::ranges::none_of(running_, waits))
    ++*options_.progress;
}

void AgentPrograms::start_waiting(net::ChildPool& pool) {
  while (!waiting_.empty() && !free_slots_.empty()) {
    const Attempt attempt = waiting_.front();
    waiting_.pop_front();
    start(pool, attempt);
  }
}

std::filesystem::path AgentPrograms::log_of(std::uint32_t slot) const {
  if (options_.log_folder.empty())
    return {};
  return options_.log_folder
         / fmt::format("{}_{}.log", options_.log_name, slot);
}

net::ChildSpec AgentPrograms::spec_of(const Attempt& attempt,
                                      const Running& running) const {
  const auto& task = tasks_[attempt.task];
  net::ChildSpec spec;
  spec.name = fmt::format("agents.command of sample {}", task.sample.value);
  spec.number = num_starts_;
  spec.argv = words_of(options_);
  spec.environment = {{"OPENAI_BASE_URL", host_.url()},
                      {"OPENAI_API_KEY", running.key},
                      {"TROUPE_SAMPLE", std::to_string(task.sample.value)},
                      without_proxy("no_proxy"),
                      without_proxy("NO_PROXY")};
  if (const auto url = host_.master_url(); !url.empty())
    spec.environment.emplace_back("TROUPE_AGENTS_URL", url);
  spec.output_file = log_of(running.slot);
  spec.output = running.output.get();
  spec.limits = {{RLIMIT_CORE, 0},
                 {RLIMIT_DATA, net::kProgramMemoryBytes},
                 {RLIMIT_FSIZE, net::kProgramFileBytes}};
  spec.trust = net::Trust::users;
  return spec;
}

void AgentPrograms::start(net::ChildPool& pool, const Attempt& attempt) {
  const auto& task = tasks_[attempt.task];
  Running running{.attempt = attempt, .slot = free_slots_.back()};
  running.output = new_output();
  task.session->begin_attempt();
  running.key = host_.admit({.session = task.session});
  ++num_starts_;
  auto spec = spec_of(attempt, running);
  const auto input = net::readable_text(task.row + "\n");
  spec.input = input.get();
  if (!spec.output_file.empty())
    log::renew_log(spec.output_file);
  running.log_begin = net::size_of_log(spec.output_file);
  running.deadline
    = AwakeClock::now()
      + std::chrono::duration_cast<AwakeClock::duration>(options_.within);
  free_slots_.pop_back();
  running.pid = pool.start(std::move(spec));
  running_.emplace(num_starts_, std::move(running));
}

void AgentPrograms::kill_late(net::ChildPool& pool) {
  const auto now = AwakeClock::now();
  for (auto& [number, running] : running_)
    if (!running.late && now > running.deadline) {
      running.late = true;
      pool.signal(running.pid, SIGKILL);
    }
}

void AgentPrograms::ended(const net::ChildExit& exit) {
  auto found = running_.extract(exit.number);
  if (found.empty())
    return;
  const Running& running = found.mapped();
  host_.dismiss(running.key);
  free_slots_.push_back(running.slot);
  models::ProgramEnd program;
  if (running.late)
    program.how = fmt::format("a kill after {} s (agents.timeout_s)",
                              options_.within.count());
  else if (exit.code != 0 || exit.signal != 0)
    program.how = net::to_string(exit);
  if (const auto log = log_of(running.slot); !log.empty())
    program.last_word = net::last_line_of(log, running.log_begin);
  program.output = last_of_output(running.output);
  program.posted = tasks_[running.attempt.task].session->posted_reward();
  settle(running.attempt, models::session_end(program, options_.needs_reward));
}

void AgentPrograms::settle(const Attempt& attempt,
                           const models::SessionEnd& end) {
  const auto& task = tasks_[attempt.task];
  if (end.failure.empty() || attempt.number >= options_.retries) {
    host_.count(counts_of(*task.session, attempt.number, !end.failure.empty()));
    return events_.on_end(attempt.task, end);
  }
  log::actors.warn_file(
    fmt::format("sample {} is led again: {}", task.sample.value, end.failure));
  waiting_.push_front({.task = attempt.task, .number = attempt.number + 1});
}

} // namespace troupe::actors
