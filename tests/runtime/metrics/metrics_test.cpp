#include "runtime/metrics/console.hpp"
#include "runtime/metrics/run_summary.hpp"
#include "runtime/metrics/step_metrics.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <limits>

using namespace troupe::runtime;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Metrics, ALineHasTheDocumentedOrder) {
  StepMetrics metrics{.step = 12, .attempt = 2, .values = {}};
  metrics.values = {{"perf/throughput", 100.5},
                    {"my/number", 1},
                    {"critic/score/mean", 0.25},
                    {"actor/pg_loss", -0.5},
                    {"perf/total_num_tokens", 4096}};
  EXPECT_EQ(metrics_line(metrics),
            "{\"step\":12,\"actor/pg_loss\":-0.5,\"critic/score/mean\":0.25,"
            "\"perf/throughput\":100.5,\"perf/total_num_tokens\":4096,"
            "\"training/global_step\":12,\"training/attempt\":2,"
            "\"my/number\":1.0}");
}

TEST(Metrics, NumbersRoundTripBitByBit) {
  StepMetrics metrics{.step = 1, .attempt = 1, .values = {{"x", 0.1 + 0.2}}};
  const auto document = nlohmann::json::parse(metrics_line(metrics));
  EXPECT_EQ(document["x"].get<double>(), 0.1 + 0.2);
}

TEST(Metrics, NonFiniteNumbersAreNullInValidJson) {
  StepMetrics metrics{
    .step = 1,
    .attempt = 1,
    .values = {{"train/loss", std::numeric_limits<double>::quiet_NaN()}}};
  const auto document = nlohmann::json::parse(metrics_line(metrics));
  EXPECT_TRUE(document["train/loss"].is_null());
}

TEST(StepLine, ShowsTheMetricsOfTheRun) {
  StepMetrics ppo{.step = 12, .attempt = 1, .values = {}};
  ppo.values = {{"critic/score/mean", 0.83},
                {"actor/reward_kl_penalty", 0.013},
                {"perf/total_num_tokens", 26040},
                {"timing_s/step", 3.1}};
  EXPECT_EQ(step_line(ppo, 60), "step 12/60 | reward 0.830 | kl 0.0130 | "
                                "8.4 k tok/s | 3.10 s");
  StepMetrics sft{.step = 1, .attempt = 1, .values = {{"train/loss", 1.8342}}};
  EXPECT_EQ(step_line(sft, 40), "step 1/40 | loss 1.834");
}

TEST(StepLine, ShowsTwoMetricsOfAUserWorkflow) {
  const StepMetrics user{.step = 3,
                         .attempt = 1,
                         .values = {{"tool/score", 0.5},
                                    {"actor/nll", 2.0},
                                    {"tool/late", 0.25},
                                    {"tool/words", 12.0},
                                    {"timing_s/step", 3.1}},
                         .user = {"tool/score", "tool/late", "tool/words"}};
  EXPECT_EQ(step_line(user, 4),
            "step 3/4 | tool/score 0.500 | tool/late 0.250 | 3.10 s");
}

TEST(ProgressBar, FitsItsWidth) {
  for (std::uint32_t done : {0u, 1u, 30u, 59u, 60u})
    for (int width : {10, 30, 79, 200})
      EXPECT_LE(progress_bar(done, 60, 90, std::max(width, 32)).size(),
                static_cast<std::size_t>(std::max(width, 32)));
  EXPECT_THAT(progress_bar(12, 60, 150, 79), HasSubstr("12/60  20 %"));
  EXPECT_THAT(progress_bar(12, 60, 150, 79), HasSubstr("2 min 30 s left"));
  EXPECT_THAT(progress_bar(60, 60, 0, 79), Not(HasSubstr("left")));
}

TEST(Durations, AreReadable) {
  EXPECT_EQ(duration_text(0.012), "12 ms");
  EXPECT_EQ(duration_text(3.1), "3.10 s");
  EXPECT_EQ(duration_text(59.97), "1 min 00 s");
  EXPECT_EQ(duration_text(125), "2 min 05 s");
  EXPECT_EQ(duration_text(11520), "3 h 12 min");
  EXPECT_EQ(count_text(999.6), "1.0 k");
  EXPECT_EQ(bytes_text(1536), "1.5 kB");
  EXPECT_EQ(bytes_text(76e9), "76.0 GB");
}

TEST(Numbers, HaveThreeDigitsAtAnySize) {
  EXPECT_EQ(three_digits(0), "0");
  EXPECT_EQ(three_digits(0.58312), "0.583");
  EXPECT_EQ(three_digits(13), "13.0");
  EXPECT_EQ(three_digits(9.996), "10.0");
  EXPECT_EQ(three_digits(0.0099999), "0.0100");
  EXPECT_EQ(three_digits(1713.4), "1710") << "no exponent";
  EXPECT_EQ(three_digits(-3.14159), "-3.14");
}

TEST(Summary, SharesAreOfAllStepsAndWaitingIsTheRest) {
  RunSummary summary;
  for (std::uint32_t step = 1; step <= 10; ++step)
    summary.add({.step = step,
                 .attempt = 1,
                 .values = {{"timing_s/gen", 1.0},
                            {"timing_s/update_actor", 0.5},
                            {"timing_s/step", 2.0},
                            {"perf/total_num_tokens", 2000},
                            {"critic/score/mean", 0.1 * step}}});
  summary.set_device("device 0", 15.0, "peak memory 2 GB in gen");
  summary.set_checkpoint("runs/x/latest");
  summary.set_trace("runs/x/trace");
  const auto text = summary.print();
  EXPECT_THAT(text, HasSubstr("10 steps in 20.0 s, 20.0 k tokens, 1.0 k"));
  EXPECT_THAT(text, HasSubstr("generate                  10.00    50 %"));
  EXPECT_THAT(text, HasSubstr("waiting and messages       5.00    25 %"));
  EXPECT_THAT(
    text, HasSubstr("device 0              idle 25 %, peak memory 2 GB in"));
  EXPECT_THAT(text, HasSubstr("reward                0.150 -> 0.950"));
  EXPECT_THAT(text, HasSubstr("runs/x/latest"));
}
