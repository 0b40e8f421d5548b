// The arguments that start a worker, for each launcher.
#include "config/base/error.hpp"
#include "net/child_programs/child_pool.hpp"
#include "runtime/launch/job_environment.hpp"
#include "runtime/launch/launch_command.hpp"
#include "runtime/launch/launcher.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>

namespace troupe::runtime {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

LaunchSpec spec_of(LauncherKind launcher) {
  return {.launcher = launcher,
          .hosts = {"node-a", "node-b"},
          .program = "/opt/troupe bin/troupe",
          .address = "10.0.0.1:4000",
          .token_file = "runs/x/.token",
          .cluster = {.nodes = 2, .devices_per_node = 3, .workers_per_node = 2},
          .threads = 4,
          .cores = 13,
          .environment = {{"KEY", "a b"}},
          .working_folder = "/data/my runs",
          .folder = RunFolder{"runs/x"}};
}

TEST(LaunchCommand, ALocalWorkerIsTheSameProgram) {
  const auto command = launch_command(spec_of(LauncherKind::local), 1);
  EXPECT_THAT(command.argv,
              ElementsAre("/opt/troupe bin/troupe", "worker", "--join",
                          "10.0.0.1:4000", "--token-file", "runs/x/.token",
                          "--number", "1", "--threads", "4", "--bind", "auto",
                          "--ports", "auto"));
  EXPECT_THAT(command.environment, Contains(Pair("KEY", "a b")));
  EXPECT_THAT(command.environment, Contains(Pair("OMP_NUM_THREADS", "4")));
}

TEST(LaunchCommand, ASpareIsToldTheRestOfItsCommandLine) {
  auto spec = spec_of(LauncherKind::local);
  const auto words = launch_command(spec, 1).argv;
  spec.address.clear();
  const auto spare = launch_command(spec, 1);
  EXPECT_THAT(spare.argv,
              ElementsAre("/opt/troupe bin/troupe", "worker", "--spare"));
  EXPECT_THAT(spare.environment, Contains(Pair("KEY", "a b")));
  std::string rest;
  for (std::size_t i = 2; i < words.size(); ++i)
    rest += words[i] + "\n";
  EXPECT_EQ(words_for_spare(spec_of(LauncherKind::local), 1), rest + "\n");
}

TEST(LaunchCommand, WorkersFillTheHostsInOrder) {
  std::vector<std::string> hosts;
  for (std::uint32_t i = 0; i < 4; ++i)
    hosts.push_back(launch_command(spec_of(LauncherKind::ssh), i).argv.at(3));
  EXPECT_THAT(hosts, ElementsAre("node-a", "node-a", "node-b", "node-b"));
}

TEST(LaunchCommand, TheRemoteShellGetsFolderAndQuotedArguments) {
  const auto command = launch_command(spec_of(LauncherKind::ssh), 2);
  EXPECT_THAT(command.argv.back(),
              StartsWith("exec sh -c 'cd '\\''/data/my runs'\\'' "));
  EXPECT_THAT(command.argv.back(),
              HasSubstr("troupe'\\'' worker --join 10.0.0.1:4000 "
                        "--token-file - --number 2 --threads 4 "
                        "--bind auto --ports auto'"));
  EXPECT_TRUE(command.reads_token) << "its host may not have the file";
}

TEST(LaunchCommand, VariablesReachARemoteWorkerThroughItsInputOnly) {
  auto spec = spec_of(LauncherKind::ssh);
  spec.working_folder = "/";
  spec.environment = {{"KEY", "a \\ 'b' $c "}, {"OTHER", ""}};
  const auto command = launch_command(spec, 0);
  for (const auto& word : command.argv)
    EXPECT_THAT(word, Not(HasSubstr("$c")));
  EXPECT_TRUE(command.environment.empty());
  // as the remote shell runs it, with another program at the end
  auto line = command.argv.back();
  const std::string program = "'\\''/opt/troupe bin/troupe'\\''";
  line.replace(line.find(program), program.size(), "env");
  line = line.substr(0, line.find(" worker")) + "'";
  net::ChildSpec shell;
  const support::TempFolder folder;
  const auto input = net::readable_text(command.input);
  shell.name = "sh";
  shell.argv = {"sh", "-c", line};
  shell.input = input.get();
  shell.output_file = folder / "said";
  net::ChildPool pool;
  pool.start(shell);
  ASSERT_TRUE(pool.wait_all(std::chrono::seconds{20}));
  const auto said = support::read_text(folder / "said");
  EXPECT_THAT(said, HasSubstr("KEY=a \\ 'b' $c \n"));
  EXPECT_THAT(said, HasSubstr("OTHER=\n"));
  EXPECT_THAT(said, HasSubstr("OMP_NUM_THREADS=4\n"));
}

TEST(LaunchCommand, ALocalWorkersVariablesAreNoArguments) {
  for (const auto launcher :
       {LauncherKind::local, LauncherKind::slurm, LauncherKind::mpi}) {
    const auto command = launch_command(spec_of(launcher), 1);
    EXPECT_THAT(command.argv, Not(Contains(HasSubstr("a b"))));
    EXPECT_THAT(command.environment, Contains(Pair("KEY", "a b")));
  }
}

TEST(LaunchCommand, AJobStepRunsOnTheWorkersNode) {
  const auto argv = launch_command(spec_of(LauncherKind::slurm), 3).argv;
  EXPECT_EQ(argv.front(), "srun");
  EXPECT_THAT(argv, Contains("--relative=1"));
  // steps overlap: with fewer cores, workers of a node would share the first
  EXPECT_THAT(argv, Contains("--cpus-per-task=13"));
  EXPECT_THAT(argv, Contains("worker"));
}

TEST(LaunchCommand, EachWorkerHasItsOwnMpirunAndNamesItsVariables) {
  const auto command = launch_command(spec_of(LauncherKind::mpi), 2);
  EXPECT_THAT(
    command.argv,
    ElementsAre("mpirun", "--quiet", "-n", "1", "--host", "node-b", "--bind-to",
                "none", "--wdir", "/data/my runs", "-x", "KEY", "-x",
                "OMP_NUM_THREADS", "/opt/troupe bin/troupe", "worker", "--join",
                "10.0.0.1:4000", "--token-file", "runs/x/.token", "--number",
                "2", "--threads", "4", "--bind", "auto", "--ports", "auto"));
  EXPECT_THAT(command.environment, Contains(Pair("KEY", "a b")));
}

TEST(LaunchCommand, AManualStartIsAShellLineThatWorksInAnyFolder) {
  EXPECT_EQ(command_by_hand(spec_of(LauncherKind::manual)),
            "cd '/data/my runs' && env OMP_NUM_THREADS=4 KEY=\"${KEY:?}\" "
            "'/opt/troupe bin/troupe' worker --join 10.0.0.1:4000 "
            "--token-file runs/x/.token --threads 4 --bind auto --ports auto");
}

std::string environment_refusal(const std::string& name,
                                const std::string& value) {
  Settings settings;
  settings.cluster.env = {{name, value}};
  try {
    launcher_of(settings, 1);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(LauncherOf, RefusesVariablesThatNoWorkerCanGet) {
  EXPECT_EQ(environment_refusal("KEY", "a b"), "");
  EXPECT_EQ(environment_refusal("HOME", "$HOME"), "");
  EXPECT_THAT(environment_refusal("TROUPE_NOT_SET", "$TROUPE_NOT_SET"),
              HasSubstr("expected TROUPE_NOT_SET in the environment"));
  EXPECT_THAT(environment_refusal("KEY", "a\nb"), HasSubstr("in one line"));
  EXPECT_THAT(environment_refusal("A=B;x", "a"),
              HasSubstr("names of variables"));
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

TEST(LauncherOf, SeveralNodesNeedALauncher) {
  ASSERT_EQ(std::getenv("SLURM_JOB_ID"), nullptr);
  EXPECT_EQ(refusal("auto", {}, 1), "");
  EXPECT_EQ(refusal("manual", {}, 8), "");
  EXPECT_EQ(refusal("ssh", {"a", "b"}, 2), "");
  EXPECT_THAT(refusal("auto", {}, 2),
              HasSubstr("cluster.nodes: expected 1 with the local launcher"));
  EXPECT_THAT(refusal("ssh", {"a"}, 2),
              HasSubstr("cluster.hosts: expected 2 names, one a node, got 1"));
  EXPECT_EQ(refusal("mpi", {"a", "b"}, 2), "");
  EXPECT_THAT(refusal("mpi", {}, 2),
              HasSubstr("cluster.hosts: expected 2 names, one a node, got 0"));
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

TEST(JobEnvironment, TheNodeWithTheFewestCoresDecides) {
  EXPECT_EQ(least_cores("72(x2),36"), 36U);
  EXPECT_EQ(least_cores("8,16(x3)"), 8U);
  EXPECT_EQ(least_cores("4"), 4U);
  EXPECT_EQ(least_cores("4(x2)"), 4U);
  EXPECT_EQ(least_cores(""), std::nullopt);
  EXPECT_EQ(least_cores("(x2),"), std::nullopt);
}

TEST(JobEnvironment, AJobHasItsOwnCoresAndNotItsHosts) {
  ::setenv("SLURM_JOB_ID", "7", 1);
  ::setenv("SLURM_JOB_CPUS_PER_NODE", "6(x2)", 1);
  EXPECT_EQ(cores_of_this_job(), 6U);
  EXPECT_EQ(threads_per_device(2), 3U);
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_JOB_CPUS_PER_NODE");
  EXPECT_GE(cores_of_this_job(), 1U);
}

TEST(JobEnvironment, HostsOfAFileAreItsFirstWordsOnce) {
  EXPECT_THAT(hosts_in("node2\nnode2\nnode1\n\n"),
              ElementsAre("node2", "node1")); // PBS and LSF: a line a slot
  EXPECT_THAT(hosts_in("a 4 all.q@a UNDEFINED\nb 4 all.q@b UNDEFINED\n"),
              ElementsAre("a", "b")); // Grid Engine
  EXPECT_THAT(hosts_in(""), ElementsAre());
}

TEST(LauncherOf, AJobOfPbsOfSeveralNodesIsStartedByMpirun) {
  const support::TempFolder folder;
  const auto file = folder / "hosts";
  support::write_text(file, "a\na\nb\n");
  ::setenv("PBS_NODEFILE", file.c_str(), 1);
  Settings settings;
  EXPECT_EQ(nodes_of_this_job(), 2U);
  EXPECT_EQ(launcher_of(settings, 2), LauncherKind::mpi);
  EXPECT_THAT(hosts_of(settings), ElementsAre("a", "b"));
  EXPECT_EQ(launcher_of(settings, 1), LauncherKind::local);
  settings.cluster.launcher = "ssh";
  EXPECT_THAT(hosts_of(settings), ElementsAre());
  ::unsetenv("PBS_NODEFILE");
  EXPECT_EQ(nodes_of_this_job(), 1U);
}

TEST(LauncherOf, CopiesOfARunThatMpirunStartedAreRefused) {
  ::setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  EXPECT_THAT(refusal("auto", {}, 1), HasSubstr("got 4 that mpirun started"));
  EXPECT_EQ(refusal("manual", {}, 1), "");
  ::setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  EXPECT_EQ(refusal("auto", {}, 1), "");
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
}

} // namespace
} // namespace troupe::runtime
