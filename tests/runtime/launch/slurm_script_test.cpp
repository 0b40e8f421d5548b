#include "config/base/error.hpp"
#include "config/settings/settings.hpp"
#include "runtime/launch/slurm_script.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using troupe::test::TempFolder;
using troupe::test::write_text;

TEST(ShellQuoted, RoundTripsThroughAShell) {
  EXPECT_EQ(shell_quoted("run.steps=5"), "run.steps=5");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

TEST(SlurmScript, RequeuesARunThatStoppedAfterACheckpoint) {
  Settings settings;
  settings.run.name = "tiny";
  settings.run.max_time = "90m";
  const auto script = slurm_script(
    settings, "/opt/troupe", {"ppo.yaml", "run.name=a b"}, "/data/my runs");
  EXPECT_THAT(script, HasSubstr("#SBATCH --job-name=tiny\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --time=94\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --signal=B:TERM@"));
  EXPECT_THAT(script,
              HasSubstr("\n/opt/troupe train ppo.yaml 'run.name=a b' &"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --chdir='/data/my runs'\n"));
  EXPECT_THAT(script, HasSubstr("-eq 75"));
  // a cancelled job would come back
  EXPECT_THAT(script, HasSubstr("--format=%T)\" = RUNNING ]; then\n"
                                "  scontrol requeue"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --nodes=1\n"));
}

TEST(SlurmScript, ANameOfSeveralLinesIsRefusedSinceTheNextIsACommand) {
  Settings settings;
  settings.run.name = "x\ntouch pwned #";
  EXPECT_THROW(slurm_script(settings, "troupe", {"a.yaml"}, "/d"), ConfigError);
  settings.run.name = "x";
  EXPECT_THROW(slurm_script(settings, "troupe", {"a.yaml"}, "/d\ntouch p #"),
               ConfigError);
  EXPECT_NO_THROW(slurm_script(settings, "troupe", {"run.steps=1\n2"}, "/d"));
}

TEST(SlurmScript, RequestsEveryNodeAndTheCoresOfItsWorkers) {
  Settings settings;
  settings.run.name = "wide";
  settings.cluster.nodes = 2;
  settings.cluster.devices_per_node = 8;
  settings.cluster.workers_per_node = 4;
  const auto script = slurm_script(settings, "troupe", {"ppo.yaml"}, "/d");
  EXPECT_THAT(script, HasSubstr("#SBATCH --nodes=2\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --ntasks-per-node=4\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --cpus-per-task=2\n"));
  settings.cluster.device = "gpu";
  settings.cluster.workers_per_node.reset(); // one per GPU
  EXPECT_THAT(slurm_script(settings, "troupe", {"ppo.yaml"}, "/d"),
              HasSubstr("#SBATCH --ntasks-per-node=8\n#SBATCH --exclusive\n"
                        "#SBATCH --gpus-per-node=8\n"));
}

TEST(SlurmScript, LeavesLinesForClusterSpecificOptions) {
  Settings settings;
  settings.run.name = "open";
  const auto script = slurm_script(settings, "troupe", {"ppo.yaml"}, "/d");
  EXPECT_THAT(script, HasSubstr("#SBATCH --exclusive\n"));
  EXPECT_THAT(script, Not(HasSubstr("cpus-per-task")));
  for (const auto* line : {"\n##SBATCH --partition=", "\n##SBATCH --account=",
                           "\n##SBATCH --time=", "\n##SBATCH --mem="})
    EXPECT_THAT(script, HasSubstr(line));
}
