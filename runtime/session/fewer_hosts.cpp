#include "runtime/session/fewer_hosts.hpp"

#include "config/base/error.hpp"
#include "plans/plan/plan_names.hpp"

#include <algorithm>

namespace troupe::runtime {

void plan_without(PreparedRun& run, const PlannedWork& whole,
                  const std::vector<std::string>& lost) {
  run.attempt.lost_hosts = lost;
  if (lost.empty()) {
    run.work = whole;
    return;
  }
  if (whole.plan.lags())
    throw FailureError({.code = Errc::refused,
                        .who = "master",
                        .what = "a host is lost, and a plan with lag cannot "
                                "be made for fewer (cluster.lost_node)",
                        .cause = ""});
  Settings settings = whole.settings;
  auto& cluster = settings.cluster;
  std::erase_if(cluster.hosts, [&](const std::string& host) {
    return std::ranges::find(lost, host) != lost.end();
  });
  cluster.nodes = static_cast<int>(cluster.hosts.size());
  if (!plans::is_preset(settings.plan))
    settings.plan = "auto";
  run.work = plan_work(settings, MeasuredNow::is_forgotten);
  plans::require_ok(run.work.report);
}

} // namespace troupe::runtime
