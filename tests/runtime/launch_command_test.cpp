// The words that start a worker, on each launcher.
#include "config/error.hpp"
#include "runtime/launch_command.hpp"
#include "runtime/own_address.hpp"

#include <gmock/gmock.h>

#include <cstdlib>

namespace troupe::runtime {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

LaunchSpec spec_of(LauncherKind launcher) {
  return {.launcher = launcher,
          .hosts = {"node-a", "node-b"},
          .program = "/opt/troupe bin/troupe",
          .address = "10.0.0.1:4000",
          .token_file = "runs/x/.token",
          .cluster = {.nodes = 2, .devices_per_node = 3, .workers_per_node = 2},
          .threads = 4,
          .environment = {{"KEY", "a b"}},
          .working_folder = "/data/my runs",
          .folder = RunFolder{"runs/x"}};
}

TEST(LaunchCommand, AWorkerOfThisHostIsTheSameProgram) {
  const auto command = launch_command(spec_of(LauncherKind::local), 1);
  EXPECT_THAT(command.argv,
              ElementsAre("/opt/troupe bin/troupe", "worker", "--join",
                          "10.0.0.1:4000", "--token-file", "runs/x/.token",
                          "--number", "1", "--threads", "4", "--bind", "auto",
                          "--ports", "auto"));
  EXPECT_THAT(command.environment, Contains(Pair("KEY", "a b")));
  EXPECT_THAT(command.environment, Contains(Pair("OMP_NUM_THREADS", "4")));
}

TEST(LaunchCommand, WorkersFillTheHostsInOrder) {
  std::vector<std::string> hosts;
  for (std::uint32_t i = 0; i < 4; ++i)
    hosts.push_back(launch_command(spec_of(LauncherKind::ssh), i).argv.at(3));
  EXPECT_THAT(hosts, ElementsAre("node-a", "node-a", "node-b", "node-b"));
}

TEST(LaunchCommand, TheRemoteShellGetsFolderEnvironmentAndQuotedWords) {
  const auto command = launch_command(spec_of(LauncherKind::ssh), 2);
  EXPECT_EQ(command.argv.back(),
            "cd '/data/my runs' && exec env 'KEY=a b' OMP_NUM_THREADS=4 "
            "'/opt/troupe bin/troupe' worker --join 10.0.0.1:4000 "
            "--token-file runs/x/.token --number 2 --threads 4 --bind auto "
            "--ports auto");
}

TEST(LaunchCommand, AStepOfTheJobRunsOnTheWorkersNode) {
  const auto argv = launch_command(spec_of(LauncherKind::slurm), 3).argv;
  EXPECT_EQ(argv.front(), "srun");
  EXPECT_THAT(argv, Contains("--relative=1"));
  EXPECT_THAT(argv, Contains("--cpus-per-task=8")); // 2 devices of 4 threads
  EXPECT_THAT(argv, Contains("worker"));
}

TEST(LaunchCommand, APersonGetsALineForAShellThatWorksInAnyFolder) {
  EXPECT_EQ(command_by_hand(spec_of(LauncherKind::manual)),
            "cd '/data/my runs' && env 'KEY=a b' OMP_NUM_THREADS=4 "
            "'/opt/troupe bin/troupe' worker --join 10.0.0.1:4000 "
            "--token-file runs/x/.token --threads 4 --bind auto --ports auto");
}

std::string refusal(const std::string& launcher,
                    const std::vector<std::string>& hosts,
                    std::uint32_t nodes) {
  Settings settings;
  settings.cluster.launcher = launcher;
  settings.cluster.hosts = hosts;
  try {
    launcher_of(settings, nodes);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(LauncherOf, SeveralNodesNeedSomebodyWhoStartsThem) {
  ASSERT_EQ(std::getenv("SLURM_JOB_ID"), nullptr);
  EXPECT_EQ(refusal("auto", {}, 1), "");
  EXPECT_EQ(refusal("manual", {}, 8), "");
  EXPECT_EQ(refusal("ssh", {"a", "b"}, 2), "");
  EXPECT_THAT(refusal("auto", {}, 2),
              HasSubstr("cluster.nodes: expected 1 with the local launcher"));
  EXPECT_THAT(refusal("ssh", {"a"}, 2),
              HasSubstr("cluster.hosts: expected 2 names, one a node, got 1"));
  EXPECT_THAT(refusal("slurm", {}, 2), HasSubstr("inside a Slurm job"));
}

TEST(LauncherOf, AJobOfSeveralNodesIsStartedBySlurm) {
  Settings settings;
  ::setenv("SLURM_JOB_ID", "7", 1);
  ::setenv("SLURM_JOB_NUM_NODES", "3", 1);
  EXPECT_EQ(launcher_of(settings, 3), LauncherKind::slurm);
  EXPECT_EQ(launcher_of(settings, 1), LauncherKind::local);
  EXPECT_EQ(nodes_of_this_job(), 3U);
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_JOB_NUM_NODES");
  EXPECT_EQ(nodes_of_this_job(), 1U);
}

TEST(OwnAddress, TowardsThisHostIsLoopback) {
  EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_THROW(address_towards("no-such-host.invalid"), FailureError);
}

} // namespace
} // namespace troupe::runtime
