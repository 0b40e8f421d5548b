// metrics.prometheus: serves the newest numbers of a run to a Prometheus
// server. Text format 0.0.4; source:
// https://prometheus.io/docs/instrumenting/exposition_formats
#pragma once

#include "runtime/metrics/step_metrics.hpp"
#include "runtime/page/http_server.hpp"
#include "runtime/run_folder/run_status.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::runtime {

/// Data that a scrape shows.
struct PrometheusView {
  std::string run;                    ///< `run` label of every sample
  std::optional<StepMetrics> metrics; ///< numbers of the last step
  double step_time_s = 0;             ///< Unix time of its commit
  std::vector<WorkerStatus> workers;
  std::uint64_t failures = 0;
};

/// Returns "troupe_actor_pg_loss" for "actor/pg_loss": characters that a name
/// may not have become `_`.
std::string prometheus_name(std::string_view metric);
/// Returns the response to a scrape.
std::string prometheus_text(const PrometheusView& view);

class PrometheusServer {
public:
  /// Listens at the address `where`, from `metrics.prometheus`. Throws
  /// FailureError (io): port in use.
  PrometheusServer(const std::string& where, const std::string& run,
                   const RunFolder& folder);

  void write(const StepMetrics& metrics);
  void set_workers(const std::vector<WorkerStatus>& workers);

private:
  struct Shared; ///< shared with the server's thread
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<HttpServer> server_;
};

} // namespace troupe::runtime
