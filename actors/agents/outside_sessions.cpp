#include "actors/agents/outside_sessions.hpp"

#include "actors/protocol/ask.hpp"
#include "config/base/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

/// Longest wait between two looks at deadlines.
constexpr std::chrono::milliseconds look_at_late{100};

models::AttemptLimits limits_of(const AgentProgramOptions& options) {
  return {.concurrency = options.concurrency,
          .retries = options.retries,
          .within
          = std::chrono::duration_cast<AwakeClock::duration>(options.within)};
}

} // namespace

void SharedAttempts::put(Ended ended) {
  const std::lock_guard lock(mutex_);
  ended_.push_back(ended);
  came_.notify_all();
}

std::vector<SharedAttempts::Ended> SharedAttempts::take() {
  std::unique_lock lock(mutex_);
  came_.wait_for(lock, look_at_late,
                 [&] { return !ended_.empty() || stopped_; });
  return std::exchange(ended_, {});
}

void SharedAttempts::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  came_.notify_all();
}

bool SharedAttempts::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

OutsideSessions::OutsideSessions(AgentHost& host,
                                 const AgentProgramOptions& options,
                                 std::vector<AgentTask> tasks,
                                 AgentPrograms::Events events)
  : host_(host),
    options_(options),
    tasks_(std::move(tasks)),
    events_(std::move(events)),
    shared_(std::make_shared<SharedAttempts>(
      models::SessionAttempts(tasks_.size(), limits_of(options)))) {
  thread_ = std::thread([this] { run(); });
}

OutsideSessions::~OutsideSessions() {
  shared_->stop();
  thread_.join();
}

void OutsideSessions::run() {
  std::optional<Failure> failure;
  try {
    run_all();
  } catch (const std::exception& error) {
    failure = to_failure(error, "agents");
  }
  for (const auto& [task, key] : keys_)
    host_.dismiss(key);
  events_.on_all_ended(std::move(failure));
}

void OutsideSessions::run_all() {
  const auto is_over = [&] {
    return shared_->with(
      [](const auto& attempts) { return attempts.is_over(); });
  };
  open_waiting();
  while (!is_over()) {
    for (const auto& [attempt, report] : shared_->take()) {
      const auto posted = tasks_[attempt.task].session->posted_reward();
      settle(attempt,
             models::session_end(report, posted, options_.needs_reward));
    }
    if (shared_->stopped())
      return;
    end_late();
    count_progress();
    open_waiting();
  }
}

void OutsideSessions::open_waiting() {
  const auto next = [&] {
    return shared_->with(
      [](auto& attempts) { return attempts.open(AwakeClock::now()); });
  };
  while (const auto attempt = next()) {
    tasks_[attempt->task].session->begin_attempt();
    keys_[attempt->task] = host_.admit(admitted(*attempt));
  }
}

/// Returns the session of an attempt as the endpoint knows it; its callbacks
/// may run after this object has ended.
AdmittedSession OutsideSessions::admitted(const Attempt& attempt) {
  const auto& task = tasks_[attempt.task];
  AdmittedSession admitted{.session = task.session};
  admitted.take
    = [shared = shared_, attempt, host = &host_,
       session = models::TakenSession{.key = "",
                                      .sample = task.sample.value,
                                      .row = task.row,
                                      .timeout_s = options_.within.count()}]()
    -> std::optional<models::TakenSession> {
    const auto waited = shared->with([&](auto& attempts) {
      return attempts.take(attempt, AwakeClock::now());
    });
    if (!waited)
      return std::nullopt;
    host->count(
      {.taken = 1, .waited_s = std::chrono::duration<double>(*waited).count()});
    return session;
  };
  admitted.end
    = [shared = shared_, attempt](const models::SessionReport& report) {
        shared->put({attempt, report});
      };
  return admitted;
}

void OutsideSessions::end_late() {
  const auto late = shared_->with(
    [](const auto& attempts) { return attempts.late(AwakeClock::now()); });
  for (const auto& attempt : late)
    settle(attempt, models::late_session_end(options_.within.count()));
}

/// Programs that think are at work; a generator that owes them turns shows its
/// own progress. Sessions that nobody takes are no work: the call's deadline
/// ends them.
void OutsideSessions::count_progress() const {
  const auto taken
    = shared_->with([](const auto& attempts) { return attempts.taken(); });
  const auto waits = [&](const Attempt& attempt) {
    return tasks_[attempt.task].session->waits_for_model();
  };
  if (options_.progress != nullptr && !taken.empty()
      && std::ranges::none_of(taken, waits))
    ++*options_.progress;
}

void OutsideSessions::settle(const Attempt& attempt,
                             const models::SessionEnd& end) {
  const bool failed = !end.failure.empty();
  const auto after = shared_->with(
    [&](auto& attempts) { return attempts.end(attempt, failed); });
  if (after == models::AfterAttempt::nothing)
    return;
  const auto& task = tasks_[attempt.task];
  host_.dismiss(keys_.extract(attempt.task).mapped());
  if (after == models::AfterAttempt::again)
    return log::actors.warn_file(fmt::format("sample {} is led again: {}",
                                             task.sample.value, end.failure));
  host_.count(counts_of(*task.session, attempt.number, failed));
  events_.on_end(attempt.task, end);
}

} // namespace troupe::actors
