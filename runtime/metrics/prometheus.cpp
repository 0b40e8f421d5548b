#include "runtime/metrics/prometheus.hpp"

#include "config/base/clock.hpp"
#include "config/base/host_port.hpp"
#include "config/base/own_address.hpp"
#include "runtime/base/jsonl_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>

namespace troupe::runtime {

namespace {

namespace http = boost::beast::http;

constexpr std::array worker_states{"starting", "ready", "suspect", "lost",
                                   "done"};

std::string label_value(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"')
      escaped += '\\';
    if (c == '\n')
      escaped += "\\n";
    else
      escaped += c;
  }
  return escaped;
}

std::string number_text(double value) {
  if (std::isnan(value))
    return "NaN";
  if (std::isinf(value))
    return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

void add_type(std::string& text, const std::string& name, const char* type) {
  text += fmt::format("# TYPE {} {}\n", name, type);
}

void add_sample(std::string& text, const std::string& name,
                const std::string& labels, double value) {
  text += fmt::format("{}{{{}}} {}\n", name, labels, number_text(value));
}

std::uint64_t count_lines(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored))
    return 0;
  const auto text = read_file(file);
  return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

} // namespace

std::string prometheus_name(std::string_view metric) {
  std::string name = "troupe_";
  for (const char c : metric)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

std::string prometheus_text(const PrometheusView& view) {
  const auto run = fmt::format("run=\"{}\"", label_value(view.run));
  std::string text;
  const auto add
    = [&](const std::string& name, const char* type, double value) {
        add_type(text, name, type);
        add_sample(text, name, run, value);
      };
  if (view.metrics) {
    add("troupe_step", "gauge", view.metrics->step);
    add("troupe_training_global_step", "gauge", view.metrics->step);
    add("troupe_training_attempt", "gauge", view.metrics->attempt);
    for (const auto& [name, value] : view.metrics->values)
      add(prometheus_name(name), "gauge", value);
    add("troupe_last_step_timestamp_seconds", "gauge", view.step_time_s);
  }
  add_type(text, "troupe_workers", "gauge");
  for (const std::string state : worker_states)
    add_sample(text, "troupe_workers",
               fmt::format("{},state=\"{}\"", run, state),
               static_cast<double>(std::ranges::count(view.workers, state,
                                                      &WorkerStatus::state)));
  add("troupe_failures_total", "counter", static_cast<double>(view.failures));
  return text;
}

struct PrometheusServer::Shared {
  Shared(const std::string& run, RunFolder of) : folder(std::move(of)) {
    view.run = run;
  }

  std::string text() {
    const std::lock_guard lock{mutex};
    view.failures = count_lines(folder.failures_file());
    return prometheus_text(view);
  }

  RunFolder folder;
  std::mutex mutex;
  PrometheusView view;
};

PrometheusServer::PrometheusServer(const std::string& where,
                                   const std::string& run,
                                   const RunFolder& folder)
  : shared_(std::make_shared<Shared>(run, folder)) {
  auto address = *parse_host_port(where); // checked with the settings
  if (address.host.empty())
    address.host = "127.0.0.1";
  const bool local = is_loopback(address.host);
  server_ = std::make_unique<HttpServer>(
    "metrics.prometheus", address.host, address.port,
    [shared = shared_, local](const HttpRequest& request, auto&) {
      if (local && !is_for_this_host(request))
        return http_reply(request, http::status::forbidden, "text/plain",
                          "these metrics are for this host only");
      if (request.method() == http::verb::get && path_of(request) == "/metrics")
        return http_reply(request, http::status::ok,
                          "text/plain; version=0.0.4; charset=utf-8",
                          shared->text());
      return http_reply(request, http::status::not_found, "text/plain",
                        "there is /metrics and nothing else");
    });
}

void PrometheusServer::write(const StepMetrics& metrics) {
  const std::lock_guard lock{shared_->mutex};
  shared_->view.metrics = metrics;
  shared_->view.step_time_s = unix_seconds();
}

void PrometheusServer::set_workers(const std::vector<WorkerStatus>& workers) {
  const std::lock_guard lock{shared_->mutex};
  shared_->view.workers = workers;
}

} // namespace troupe::runtime
