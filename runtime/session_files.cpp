#include "runtime/session_files.hpp"

#include "actors/call_options.hpp"
#include "config/log.hpp"
#include "config/trace.hpp"
#include "runtime/chrome_trace.hpp"
#include "runtime/jsonl_file.hpp"
#include "runtime/step_names.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <utility>

namespace troupe::runtime {

namespace {

void join(StepMetrics& metrics, const StepMetrics& more) {
  for (const auto& [name, value] : more.values)
    metrics.set(name, value);
}

/// Training does not depend on its page: a port that is in use is a warning and
/// another port, an address that is none a warning.
std::unique_ptr<TraceServer> open_page_at_or_near(const RunFolder& folder,
                                                  TraceServerOptions options) {
  try {
    return std::make_unique<TraceServer>(folder, options);
  } catch (const FailureError& error) {
    if (options.port == 0) {
      log::runtime.warn("the run has no page: " + to_string(error.failure()));
      return nullptr;
    }
    log::runtime.warn(fmt::format("trace.port: {}; the page takes another port",
                                  to_string(error.failure())));
  }
  options.port = 0;
  return open_page_at_or_near(folder, std::move(options));
}

} // namespace

SessionFiles::SessionFiles(const SessionPlan& session)
  : session_(session),
    lock_(begin_attempt(session)),
    folder_(session.run_folder),
    console_(session.quiet) {
  log::open(folder_.log_file(), log::Level::info);
  if (session.rows.data)
    log::runtime.info(rows_sentence(session.rows));
  predicted_.emplace(session);
  if (session.settings.trace.enabled)
    trace::start(folder_.trace_folder()
                   / fmt::format("master_{:02}.events", session.attempt),
                 "master", 0, actors::trace_bytes_of_master(session.settings));
  if (session.settings.metrics.jsonl)
    metrics_ = std::make_unique<MetricsFile>(folder_.metrics_file());
  if (session.settings.metrics.tensorboard)
    tensorboard_
      = std::make_unique<TensorboardFile>(folder_.tensorboard_folder());
  if (const auto& command = session.settings.metrics.command; !command.empty())
    command_ = std::make_unique<MetricsCommand>(command);
  if (const auto& where = session.settings.metrics.prometheus; where != "off")
    prometheus_ = std::make_unique<PrometheusServer>(
      where, session.settings.run.name, folder_);
  newest_ = last_metrics(folder_.metrics_file(), session.first_step);
  newest_.attempt = session.attempt;
  status_.step = session.first_step;
  status_.steps = session.num_steps;
  status_.attempt = session.attempt;
  status_.host = host_name();
  status_.pid = getpid();
  if (session.settings.trace.enabled)
    open_page();
}

SessionFiles::~SessionFiles() {
  std::error_code ignored;
  std::filesystem::remove(folder_.root() / ".token", ignored);
  trace::stop();
  log::flush();
}

/// On loopback, unless the run itself listens elsewhere.
void SessionFiles::open_page() {
  const auto& settings = session_.settings;
  const auto options
    = page_options(settings.cluster.bind,
                   static_cast<std::uint16_t>(settings.trace.port.value_or(0)));
  page_ = open_page_at_or_near(folder_, options);
  if (!page_)
    return;
  status_.trace_url = page_->url();
  if (session_.quiet)
    return;
  console_.say("watch the run at " + page_->url());
  if (session_.open_page)
    open_in_browser(page_->url());
}

/// The last state, and the page's watchers see it before the page goes.
void SessionFiles::write_last_state(const std::string& state,
                                    const char* workers) {
  for (auto& worker : status_.workers)
    worker.state = workers;
  status_.trace_url.clear();
  write_state(state);
  page_.reset();
}

std::filesystem::path SessionFiles::write_secret(const RunSecret& secret) {
  const auto path = std::filesystem::absolute(folder_.root() / ".token");
  const auto old_mask = umask(0077);
  replace_file(path, secret.text);
  umask(old_mask);
  return path;
}

void SessionFiles::write_state(const std::string& state) {
  const std::string now = state; // `state` may be the status itself
  if (std::exchange(status_.state, now) != now)
    log::runtime.info(fmt::format("{} at step {}", now, status_.step));
  status_.eta_s = console_.seconds_left();
  write_status(folder_, status_);
  if (prometheus_)
    prometheus_->set_workers(status_.workers);
}

void SessionFiles::add_worker(std::uint32_t number, const std::string& host,
                              std::int64_t pid) {
  log::runtime.info(
    fmt::format("worker {} joined from {} (pid {})", number, host, pid));
  status_.workers.push_back({number, host, pid, "ready"});
  if (prometheus_)
    prometheus_->set_workers(status_.workers);
}

void SessionFiles::set_worker_state(WorkerId worker, const std::string& state) {
  auto& known = status_.workers.at(worker.value);
  log::runtime.info(
    fmt::format("worker {} (pid {}) is {}", known.rank, known.pid, state));
  known.state = state;
  write_state(status_.state);
}

void SessionFiles::begin_steps() {
  console_.start(session_.first_step, session_.num_steps);
  write_state("running");
}

void SessionFiles::add_step(const actors::StepReport& report) {
  StepMetrics metrics = name_step(session_, report);
  predicted_->add(report, metrics);
  if (tensorboard_)
    tensorboard_->write(metrics);
  newest_ = metrics;
  if (early_evaluation_ && early_evaluation_->step == metrics.step)
    join(newest_, *std::exchange(early_evaluation_, std::nullopt));
  write_line(newest_);
  if (session_.settings.metrics.console)
    console_.step(metrics);
  warn_of_skips(metrics);
  summary_.add(metrics);
  for (const auto& [rank, busy] : report.busy)
    busy_[rank] += busy;
  note_peaks(report);
  status_.step = metrics.step;
  write_state(status_.state);
}

void SessionFiles::warn_of_skips(const StepMetrics& metrics) {
  for (const auto& [name, value] : metrics.values)
    if (name.ends_with("/skipped_steps") && value > 0
        && warned_of_.insert(name).second)
      log::runtime.warn(
        fmt::format("step {}: {} optimizer steps skipped, their gradients were "
                    "infinite or no numbers; {} counts them from now on",
                    metrics.step, value, name));
}

void SessionFiles::note_peaks(const actors::StepReport& report) {
  peaks_.add(report);
  status_.devices.clear();
  for (const auto& [rank, peak] : peaks_.all())
    status_.devices.push_back({rank.value, peak});
}

void SessionFiles::write_line(const StepMetrics& metrics) {
  if (metrics_)
    metrics_->write(metrics);
  if (command_)
    command_->write(metrics_line(metrics));
  if (prometheus_)
    prometheus_->write(metrics);
}

void SessionFiles::add_evaluation(const actors::StepReport& report) {
  const StepMetrics found = name_evaluation(session_, report);
  if (tensorboard_)
    tensorboard_->write(found);
  if (session_.settings.metrics.console)
    console_.say(evaluation_line(found));
  summary_.add_phase("testing", report.duration.count());
  note_peaks(report);
  if (newest_.step < found.step) { // the step waits for its checkpoint's copy
    early_evaluation_ = found;
    return;
  }
  join(newest_, found);
  write_line(newest_);
}

LastWords SessionFiles::last_words(WorkerId worker) const {
  std::ifstream file{folder_.worker_log(worker)};
  return last_words_of(file);
}

bool SessionFiles::stop_requested() const {
  std::error_code ignored; // asked again soon; a lost folder shows elsewhere
  return std::filesystem::exists(folder_.stop_file(), ignored);
}

void SessionFiles::summarise(const actors::RunEnd& end, double wall_s) {
  console_.finish();
  log::runtime.info(fmt::format(
    "ended before step {}; checkpoint {}", step_number(end.next_step),
    end.checkpoint.empty() ? "none" : end.checkpoint));
  const auto& cluster = session_.plan.cluster;
  const auto& peaks = peaks_.all();
  for (std::uint32_t i = 0; i < cluster.num_devices(); ++i) {
    const auto peak = peaks.find(Rank{i});
    summary_.set_device(
      fmt::format("device {} (worker {})", i, cluster.worker_of(Rank{i}).value),
      busy_[Rank{i}].count(),
      peak == peaks.end() ? "" : peak_text(peak->second));
  }
  summary_.set_wall_seconds(wall_s);
  if (!end.checkpoint.empty())
    summary_.set_checkpoint(end.checkpoint);
  if (session_.settings.trace.enabled) {
    trace::stop();
    write_chrome_trace(folder_.root());
    summary_.set_trace(folder_.trace_json());
  }
  console_.say(summary_.print());
}

void SessionFiles::conclude_done(const actors::RunEnd& end, double wall_s) {
  write_last_state("done", "done");
  summarise(end, wall_s);
}

void SessionFiles::conclude_stopped(const actors::RunEnd& end, double wall_s,
                                    bool interrupted) {
  write_last_state(interrupted ? "interrupted" : "stopped", "done");
  summarise(end, wall_s);
  console_.say(fmt::format("stopped after step {}; the same command continues",
                           end.next_step.value));
}

void SessionFiles::conclude_failed(const actors::RunEnd& end) {
  console_.finish();
  const Failure& failure = end.failure;
  status_.last_failure = to_string(failure);
  try {
    append_failure(folder_,
                   {.attempt = session_.attempt,
                    .who = failure.who,
                    .host = host_name(),
                    .when = fmt::format("step {}", step_number(end.next_step)),
                    .code = failure.code,
                    .what = failure.what,
                    .cause = failure.cause,
                    .action = "stopped the run"});
    write_last_state("failed", "lost"); // what was left was killed
  } catch (const FailureError& error) {
    log::runtime.info(error.what()); // a full disk; the first cause counts
  }
  log::runtime.info("failed: " + status_.last_failure); // stderr: once, below
  std::cerr << "error: " << status_.last_failure << "\n";
}

} // namespace troupe::runtime
