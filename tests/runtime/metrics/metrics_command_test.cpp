#include "runtime/metrics/metrics_command.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsCommand, GetsLinesAndNoSecretsOfTheEnvironment) {
  const support::TempFolder folder;
  const auto output = folder / "output";
  ::setenv("SOME_API_KEY", "secret", 1);
  {
    MetricsCommand command("cat >" + output.string() + "; env >>"
                           + output.string());
    command.write("{\"step\": 1}");
  }
  ::unsetenv("SOME_API_KEY");
  const auto got = support::read_text(output);
  EXPECT_THAT(got, HasSubstr("{\"step\": 1}\n"));
  EXPECT_THAT(got, HasSubstr("PATH="));
  EXPECT_THAT(got, Not(HasSubstr("SOME_API_KEY")));
}

TEST(MetricsCommand, SaysThatItKilledAProgramThatDidNotEnd) {
  using namespace std::chrono_literals;
  ::testing::internal::CaptureStderr();
  {
    const MetricsCommand command(
      {.name = "metrics.pets", .argv = {"sleep", "60"}, .grace = 200ms});
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("metrics.pets was still running 0.2 s after its last "
                        "line and was killed"));
}

} // namespace
} // namespace troupe::runtime
