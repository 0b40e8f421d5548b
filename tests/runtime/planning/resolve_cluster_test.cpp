#include "config/base/error.hpp"
#include "net/base/gpus.hpp"
#include "runtime/planning/resolve_cluster.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::HasSubstr;
using troupe::test::TempFolder;
using troupe::test::write_text;

namespace {

plans::Workflow one_call() {
  plans::Workflow workflow;
  workflow.name = "sft";
  workflow.roles = {{.name = "actor", .trained = true, .scalar_head = false}};
  workflow.calls
    = {{.name = "train", .kind = plans::CallKind::train, .role = "actor"}};
  return workflow;
}

bool always(const plans::ExecutionPlan&) {
  return true;
}
bool never(const plans::ExecutionPlan&) {
  return false;
}

std::string choice_error(const Settings& settings) {
  try {
    choose_plan(settings, one_call(), "", always);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

} // namespace

TEST(ResolveCluster, AutoIsOneDeviceOnAllCores) {
  const auto chosen = choose_plan({}, one_call(), "", always);
  EXPECT_EQ(chosen.plan.cluster.num_devices(), 1u);
  EXPECT_EQ(chosen.plan.cluster.num_workers(), 1u);
  EXPECT_EQ(chosen.name, "single (chosen by auto)");
}

TEST(ResolveCluster, SeveralDevicesShareAPlanWhereItFits) {
  Settings settings;
  settings.cluster.devices_per_node = 4;
  settings.cluster.workers_per_node = 2;
  const auto chosen = choose_plan(settings, one_call(), "", always);
  EXPECT_EQ(chosen.name, "data_parallel (chosen by auto)");
  EXPECT_EQ(chosen.plan.calls.at("train").strategy.dp, 4u);
  EXPECT_EQ(chosen.plan.cluster.num_workers(), 2u);
  const auto single_fits = [](const plans::ExecutionPlan& plan) {
    return plan.calls.at("train").strategy.dp == 1;
  };
  EXPECT_EQ(choose_plan(settings, one_call(), "", single_fits).name,
            "single (chosen by auto)");
  // nothing fits: the errors are those of the plan that uses everything
  EXPECT_EQ(choose_plan(settings, one_call(), "", never).name,
            "data_parallel (chosen by auto)");
}

TEST(ResolveCluster, ANamedPresetIsMadeForTheClusterOfTheSettings) {
  Settings settings;
  settings.cluster.devices_per_node = 4;
  settings.plan = "verl";
  const auto make = [](const plans::Cluster& cluster) {
    plans::ExecutionPlan plan{.cluster = cluster};
    plan.lag["made"] = cluster.devices_per_node;
    return plan;
  };
  const auto chosen = choose_plan(settings, one_call(), "", always, make);
  EXPECT_EQ(chosen.plan.lag.at("made"), 4u);
  EXPECT_EQ(chosen.name, "verl");
  EXPECT_EQ(choose_plan(settings, one_call(), "", always).plan.lag.size(), 0u)
    << "without it the preset as it is";
}

TEST(ResolveCluster, OneDeviceIsSearchedWhereItsDefaultPlanDoesNotFit) {
  const auto search = [](const plans::Cluster&) {
    return ChosenPlan{.plan = {}, .name = "searched", .why = {}};
  };
  EXPECT_EQ(choose_plan({}, one_call(), "", always, {}, search).name,
            "single (chosen by auto)");
  EXPECT_EQ(choose_plan({}, one_call(), "", never, {}, search).name,
            "searched");
}

TEST(ResolveCluster, ARunKeepsItsPlanWhileTheDeviceCountIsTheSame) {
  const TempFolder temp;
  const auto old_plan = temp.path() / "plan.yaml";
  write_text(old_plan, "cluster: {nodes: 1, devices_per_node: 2}\n"
                       "calls: {train: {devices: 1, strategy: d1}}\n");
  Settings settings;
  settings.cluster.devices_per_node = 2;
  auto chosen = choose_plan(settings, one_call(), old_plan, always);
  EXPECT_EQ(chosen.name, "of the run so far");
  EXPECT_EQ(chosen.plan.calls.at("train").devices.at(0), Rank{1});
  settings.cluster.devices_per_node = 3;
  chosen = choose_plan(settings, one_call(), old_plan, always);
  EXPECT_EQ(chosen.name, "data_parallel (chosen by auto)");
}

TEST(ResolveCluster, AutoFollowsThePlansOwnCluster) {
  Settings settings;
  settings.plan_inline = true;
  settings.plan = "cluster: {nodes: 1, devices_per_node: 4, "
                  "workers_per_node: 2}\n"
                  "calls: {train: {devices: 0-3, strategy: d4}}\n";
  auto chosen = choose_plan(settings, one_call(), "", always);
  EXPECT_EQ(chosen.plan.cluster.num_devices(), 4u);
  EXPECT_EQ(chosen.plan.cluster.num_workers(), 2u);
  EXPECT_EQ(
    *with_cluster(settings, chosen.plan.cluster).cluster.devices_per_node, 4);
  settings.cluster.workers_per_node = 1;
  chosen = choose_plan(settings, one_call(), "", always);
  EXPECT_EQ(chosen.plan.cluster.num_workers(), 1u);
  settings.cluster.devices_per_node = 2;
  EXPECT_THROW(choose_plan(settings, one_call(), "", always), PlanError);
  EXPECT_THAT(choice_error(settings), HasSubstr("expected 4 as in plan"));
}

TEST(ResolveCluster, MissingGpusAreNamedWithTheReason) {
  const auto gpus = net::find_gpus();
  if (!gpus.names.empty())
    GTEST_SKIP() << "this machine has " << gpus.names.size() << " GPUs";
  Settings settings;
  EXPECT_EQ(with_cluster(settings, {}).cluster.device, "cpu");
  settings.cluster.device = "gpu";
  EXPECT_THROW(choose_plan(settings, one_call(), "", always), ConfigError);
  EXPECT_THAT(choice_error(settings), HasSubstr("cluster.device: expected"));
  EXPECT_THAT(choice_error(settings), HasSubstr(gpus.why_none));
}

TEST(ResolveCluster, AutoDoesNotTakeTheCpuForGpusThatCannotBeUsed) {
  const net::GpuReport refused{.names = {},
                               .generations = {},
                               .memory_bytes = {},
                               .ids = {},
                               .driver = "CUDA 13.0",
                               .why_none = "it does not share its memory",
                               .is_refused = true};
  Settings settings;
  settings.cluster.device = "auto";
  try {
    device_kind_among(settings, refused);
    FAIL() << "a run on the CPU would be hundreds of times slower";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected cpu on this machine (it does "
                                        "not share its memory)"));
  }
  settings.cluster.device = "cpu";
  EXPECT_EQ(device_kind_among(settings, refused), "cpu");
}

TEST(ResolveCluster, ALinkBetweenHostsMayBeSilentForLongerThanAProcess) {
  Settings settings;
  settings.cluster.device = "cpu";
  const auto silence_s = [&](std::uint32_t nodes) {
    return with_cluster(settings, {.nodes = nodes}).cluster.silence_s.value();
  };
  EXPECT_EQ(silence_s(1), 10);
  EXPECT_EQ(silence_s(2), 30);
  settings.cluster.bind = "127.0.0.1";
  EXPECT_EQ(silence_s(1), 10);
  settings.cluster.bind = "10.0.0.1"; // workers may come from elsewhere
  EXPECT_EQ(silence_s(1), 30);
  settings.cluster.silence_s = 45;
  EXPECT_EQ(silence_s(1), 45);
  EXPECT_EQ(silence_s(2), 45);
}

TEST(ResolveCluster, UnknownPlansNameTheNearest) {
  Settings settings;
  settings.plan = "data_paralel";
  EXPECT_THROW(choose_plan(settings, one_call(), "", always), ConfigError);
  EXPECT_THAT(choice_error(settings), HasSubstr("'data_parallel'"));
  settings.plan = "openrlhf"; // one device is too few for two groups
  auto two_roles = one_call();
  two_roles.roles.push_back({.name = "critic", .trained = true});
  two_roles.calls.push_back(
    {.name = "train_critic", .kind = plans::CallKind::train, .role = "critic"});
  EXPECT_THROW(choose_plan(settings, two_roles, "", always), PlanError);
}

TEST(ResolveCluster, MoreWorkersThanDevicesAreRefused) {
  Settings settings;
  settings.cluster.workers_per_node = 2;
  EXPECT_THAT(choice_error(settings), HasSubstr("cluster.workers_per_node"));
}
