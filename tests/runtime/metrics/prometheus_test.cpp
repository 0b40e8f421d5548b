#include "runtime/metrics/prometheus.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Prometheus, NamesKeepOnlyLettersAndDigits) {
  EXPECT_EQ(prometheus_name("actor/pg_loss"), "troupe_actor_pg_loss");
  EXPECT_EQ(prometheus_name("val-core/openai.gsm8k/reward/best@8"),
            "troupe_val_core_openai_gsm8k_reward_best_8");
}

TEST(Prometheus, EveryMetricHasATypeAndTheRunsLabel) {
  PrometheusView view{.run = "tiny", .metrics = StepMetrics{.step = 7}};
  view.metrics->set("timing_s/step", 0.25);
  view.metrics->set("actor/pg_loss", std::numeric_limits<double>::quiet_NaN());
  view.step_time_s = 1.5;
  view.workers = {{.state = "ready"}, {.state = "ready"}, {.state = "lost"}};
  view.failures = 2;
  const auto text = prometheus_text(view);
  for (const char* line :
       {"# TYPE troupe_timing_s_step gauge\n"
        "troupe_timing_s_step{run=\"tiny\"} 0.25\n",
        "troupe_actor_pg_loss{run=\"tiny\"} NaN\n",
        "troupe_step{run=\"tiny\"} 7\n",
        "troupe_last_step_timestamp_seconds{run=\"tiny\"} 1.5\n",
        "troupe_workers{run=\"tiny\",state=\"ready\"} 2\n",
        "troupe_workers{run=\"tiny\",state=\"lost\"} 1\n",
        "troupe_workers{run=\"tiny\",state=\"suspect\"} 0\n",
        "# TYPE troupe_failures_total counter\n"
        "troupe_failures_total{run=\"tiny\"} 2\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(Prometheus, LabelsAreEscapedAndNoMetricPrecedesTheFirstStep) {
  const auto text = prometheus_text({.run = "a\"b\\c\nd"});
  EXPECT_THAT(text, HasSubstr(R"({run="a\"b\\c\nd"} 0)"));
  EXPECT_THAT(text, Not(HasSubstr("troupe_step")));
}

} // namespace
} // namespace troupe::runtime
