#include "runtime/metrics/metrics_command.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

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

} // namespace
} // namespace troupe::runtime
