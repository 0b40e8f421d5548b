#include "runtime/session/session_files.hpp"

#include "actors/worker_base/call_options.hpp"
#include "config/base/log.hpp"
#include "config/trace/trace.hpp"
#include "runtime/base/human_text.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/metrics/step_names.hpp"
#include "runtime/page/page_access.hpp"
#include "runtime/trace/chrome_trace.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <utility>

namespace troupe::runtime {

namespace {

/// Opens the page. Training does not depend on it: for a port in use, it warns
/// and takes another one, for an invalid address it warns.
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

/// Returns whether what is printed goes to a file that others may read, as that
/// of a batch job.
bool others_read_output() {
  struct stat output {};
  return ::fstat(STDOUT_FILENO, &output) == 0 && S_ISREG(output.st_mode)
         && (output.st_mode & (S_IRGRP | S_IROTH)) != 0;
}

} // namespace

SessionFiles::SessionFiles(const PreparedRun& run)
  : run_(run),
    lock_(begin_attempt(run)),
    folder_(run.attempt.folder),
    failures_(folder_),
    console_(run.display.quiet) {
  log::open(folder_.log_file(), log::Level::info);
  if (run.data.rows.data)
    log::runtime.info(rows_sentence(run.data.rows));
  start_trace();
  steps_.emplace(run, folder_);
  status_.step = run.steps.first;
  status_.steps = run.steps.end;
  status_.attempt = run.attempt.number;
  status_.host = host_name();
  status_.pid = getpid();
  if (run.work.settings.trace.enabled)
    open_page();
}

SessionFiles::~SessionFiles() {
  std::error_code ignored;
  std::filesystem::remove(folder_.secret_file(), ignored);
  std::filesystem::remove(folder_.page_token_file(), ignored);
  std::filesystem::remove(folder_.agents_token_file(), ignored);
  trace::stop();
  log::flush();
}

void SessionFiles::start_trace() const {
  const auto& settings = run_.work.settings;
  if (settings.trace.enabled)
    trace::start(folder_.trace_folder()
                   / fmt::format("master_{:02}.events", run_.attempt.number),
                 "master", 0, actors::trace_bytes_of_master(settings));
}

/// Opens the page on loopback, unless the run itself listens elsewhere.
void SessionFiles::open_page() {
  const auto& settings = run_.work.settings;
  const auto options
    = page_options(settings.cluster.bind,
                   static_cast<std::uint16_t>(settings.trace.port.value_or(0)));
  page_ = open_page_at_or_near(folder_, options);
  if (!page_)
    return;
  status_.trace_url = page_->address();
  write_page_token(folder_, page_->token());
  if (run_.display.quiet)
    return;
  console_.say("watch the run at "
               + (others_read_output()
                    ? page_->address() + " (with its token: `troupe status "
                        + folder_.root().string() + "`)"
                    : page_->url()));
  if (run_.display.opens_page)
    page_->open_in_browser();
}

/// Writes the last state; the page's viewers get it before the page ends.
void SessionFiles::write_last_state(const std::string& state,
                                    const char* workers) {
  for (auto& worker : status_.workers)
    worker.state = workers;
  status_.trace_url.clear();
  write_state(state);
  page_.reset();
}

std::filesystem::path SessionFiles::write_secret(const RunSecret& secret) {
  const auto path = std::filesystem::absolute(folder_.secret_file());
  replace_private_file(path, secret.text);
  return path;
}

void SessionFiles::write_state(const std::string& state) {
  const std::string now = state; // `state` may be a reference to the status
                                 // itself
  if (std::exchange(status_.state, now) != now)
    log::runtime.info(fmt::format("{} at step {}", now, status_.step));
  status_.eta_s = console_.seconds_left();
  write_status(folder_, status_);
  steps_->set_workers(status_.workers);
}

void SessionFiles::add_worker(std::uint32_t number, const std::string& host,
                              std::int64_t pid) {
  log::runtime.info(
    fmt::format("worker {} joined from {} (pid {})", number, host, pid));
  status_.workers.push_back({number, host, pid, "ready"});
  steps_->set_workers(status_.workers);
}

void SessionFiles::set_worker_state(WorkerId worker, const std::string& state) {
  auto& known = status_.workers.at(worker.value);
  log::runtime.info(
    fmt::format("worker {} (pid {}) is {}", known.rank, known.pid, state));
  known.state = state;
  write_state(status_.state);
}

void SessionFiles::begin_steps() {
  const auto now = std::chrono::steady_clock::now();
  failures_.end_recovery(now);
  if (const auto waited = failures_.end_wait(now))
    console_.say(fmt::format("{} is back after {}", waited->first,
                             duration_text(waited->second.count())));
  console_.start(run_.steps.first, run_.steps.end);
  write_state("running");
}

void SessionFiles::begin_recovery(const actors::RunEnd& end,
                                  std::uint32_t lost_steps) {
  const auto now = std::chrono::steady_clock::now();
  failures_.end_recovery(now); // a recovery that failed
  auto record = record_of(end, lost_steps == 0 ? "restarted" : "rolled_back");
  record.cost = RecoveryCost{.lost_steps = lost_steps};
  failures_.begin_recovery(std::move(record), now);
  status_.last_failure = to_string(end.failure);
  for (auto& worker : status_.workers)
    worker.state = "lost";
  write_state("recovering");
  log::runtime.warn("recovering from: " + status_.last_failure);
  console_.say(
    fmt::format("recovering: {}; continuing after step {} ({} steps lost)",
                status_.last_failure, status_.step - lost_steps, lost_steps));
}

std::string SessionFiles::node_name(std::uint32_t node) const {
  const auto& hosts = run_.work.settings.cluster.hosts;
  const auto host = node < hosts.size() ? " (" + hosts[node] + ")" : "";
  return fmt::format("node {}{}", node, host);
}

bool SessionFiles::waits_for(std::uint32_t node) const {
  return failures_.waits_for(node_name(node));
}

void SessionFiles::wait_for_node(const actors::RunEnd& end,
                                 std::uint32_t node) {
  const auto name = node_name(node);
  failures_.begin_wait(record_of(end, "waiting"), name,
                       std::chrono::steady_clock::now());
  console_.say(fmt::format("waiting for {} (cluster.lost_node)", name));
}

void SessionFiles::open_attempt() {
  start_trace();
  steps_->open_attempt();
  status_.step = run_.steps.first;
  status_.attempt = run_.attempt.number;
  status_.workers.clear();
  write_state("recovering");
}

void SessionFiles::add_step(const actors::StepReport& report) {
  const StepMetrics metrics = steps_->add_step(report);
  if (run_.work.settings.metrics.console)
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

void SessionFiles::add_evaluation(const actors::StepReport& report) {
  const StepMetrics found = name_evaluation(run_, report);
  if (run_.work.settings.metrics.console)
    console_.say(evaluation_line(found));
  summary_.add_phase("testing", report.duration.count());
  note_peaks(report);
  steps_->add_evaluation(found);
}

CrashReport SessionFiles::crash_report(WorkerId worker) const {
  std::ifstream file{folder_.worker_log(worker)};
  return crash_report_of(file);
}

bool SessionFiles::stop_requested() const {
  std::error_code ignored; // checked again soon; a lost folder is noticed
                           // elsewhere
  return std::filesystem::exists(folder_.stop_file(), ignored);
}

void SessionFiles::summarise(const actors::RunEnd& end, double wall_s) {
  console_.finish();
  log::runtime.info(fmt::format(
    "ended before step {}; checkpoint {}", step_number(end.next_step),
    end.checkpoint.empty() ? "none" : end.checkpoint));
  const auto& cluster = run_.work.plan.cluster;
  const auto& peaks = peaks_.all();
  std::map<Rank, std::uint64_t> planned;
  for (const auto& device : run_.work.report.devices)
    planned[device.device] = device.peak_bytes;
  for (std::uint32_t i = 0; i < cluster.num_devices(); ++i) {
    const auto peak = peaks.find(Rank{i});
    summary_.set_device(
      fmt::format("device {} (worker {})", i, cluster.worker_of(Rank{i}).value),
      busy_[Rank{i}].count(),
      peak == peaks.end() ? "" : peak_text(peak->second, planned[Rank{i}]));
  }
  summary_.set_wall_seconds(wall_s);
  if (!end.checkpoint.empty())
    summary_.set_checkpoint(end.checkpoint);
  if (run_.work.settings.trace.enabled) {
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

Failure SessionFiles::explained(Failure failure) const {
  if (failure.code == Errc::out_of_memory)
    failure.what
      += "; " + planned_and_found(run_.work.report.devices, peaks_.all());
  return failure;
}

FailureRecord SessionFiles::record_of(const actors::RunEnd& end,
                                      std::string action) const {
  const Failure failure = explained(end.failure);
  return {.attempt = run_.attempt.number,
          .who = failure.who,
          .host = host_name(),
          .when = fmt::format("step {}", step_number(end.next_step)),
          .code = failure.code,
          .what = failure.what,
          .cause = failure.cause,
          .action = std::move(action),
          .cost = {}};
}

void SessionFiles::conclude_failed(const actors::RunEnd& end) {
  console_.finish();
  status_.last_failure = to_string(explained(end.failure));
  const auto& reason = failures_.gave_up();
  if (!reason.empty())
    status_.last_failure += "; " + reason;
  const bool recovered = run_.attempt.restarts > 0 || !reason.empty();
  try {
    failures_.end_recovery(std::chrono::steady_clock::now());
    append_failure(folder_,
                   record_of(end, recovered ? "gave_up" : "stopped the run"));
    write_last_state("failed", "lost"); // remaining workers were killed
  } catch (const FailureError& error) {
    log::runtime.info(error.what()); // a full disk; the root cause matters more
  }
  log::runtime.info("failed: " + status_.last_failure); // stderr: once, below
  std::cerr << "error: " << status_.last_failure << "\n";
}

} // namespace troupe::runtime
