// metrics.prometheus: the newest numbers of a run for a Prometheus server that
// asks. Text format 0.0.4; source:
// https://prometheus.io/docs/instrumenting/exposition_formats
#pragma once

#include "runtime/live/http_server.hpp"
#include "runtime/metrics/step_metrics.hpp"
#include "runtime/run_status.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::runtime {

/// What a scrape sees.
struct PrometheusView {
  std::string run;                    ///< label of every sample
  std::optional<StepMetrics> metrics; ///< of the last step
  double step_time_s = 0;             ///< Unix time of its commit
  std::vector<WorkerStatus> workers;
  std::uint64_t failures = 0;
};

/// "actor/pg_loss" as "troupe_actor_pg_loss": what may not stand in a name
/// becomes `_`.
std::string prometheus_name(std::string_view metric);
/// The answer to a scrape.
std::string prometheus_text(const PrometheusView& view);

class PrometheusServer {
public:
  /// Listens where `metrics.prometheus` says. FailureError (io): port in use.
  PrometheusServer(const std::string& where, const std::string& run,
                   const RunFolder& folder);

  void write(const StepMetrics& metrics);
  void set_workers(const std::vector<WorkerStatus>& workers);

private:
  struct Shared; ///< with the server's thread
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<HttpServer> server_;
};

} // namespace troupe::runtime
