// Numbers of this machine before it is measured are of what the run computes
// on, and profiles of its CPU are none of its GPUs.
#include "runtime/base/processor_name.hpp"
#include "runtime/planning/auto_plan.hpp"
#include "runtime/planning/machine_hardware.hpp"

#include <gmock/gmock.h>

#include <cstdlib>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

net::GpuReport two_gpus() {
  net::GpuReport gpus;
  gpus.names = {"NVIDIA H200", "NVIDIA A100-SXM4-80GB"};
  gpus.generations = {9, 8};
  gpus.memory_bytes = {141'000'000'000, 80'000'000'000};
  gpus.ids.resize(2);
  return gpus;
}

TEST(MachineHardware, OfGpusHasTheMemoryAndTheGenerationOfTheDriver) {
  auto gpus = two_gpus();
  const auto unlike = gpu_hardware(gpus, 2);
  EXPECT_EQ(unlike.mem_bytes, 80e9) << "the smallest";
  EXPECT_EQ(unlike.compute_capability, 8) << "the oldest";
  EXPECT_THAT(unlike.sources.at("device.mem_Bps"), HasSubstr("as h100x8"));
  EXPECT_EQ(gpu_hardware(gpus, 4).mem_bytes, 40e9) << "two devices share one";
  gpus.names.pop_back();
  gpus.generations.pop_back();
  gpus.memory_bytes.pop_back();
  const auto alike = gpu_hardware(gpus, 1);
  EXPECT_EQ(alike.mem_bytes, 141e9);
  EXPECT_EQ(alike.compute_capability, 9);
  EXPECT_EQ(alike.mem_Bps, plans::load_hardware("h200x8").mem_Bps);
}

TEST(MachineHardware, TheSettingsSayWhatStaysFreeOfGpus) {
  const auto hardware = gpu_hardware(two_gpus(), 2);
  EXPECT_EQ(hardware.reserve_bytes, 0);
  EXPECT_FALSE(hardware.sources.contains("device.reserve_bytes"));
}

TEST(MachineHardware, OfACpuIsTheLaptops) {
  Settings settings;
  settings.cluster.device = "cpu";
  EXPECT_EQ(machine_hardware(settings, 4).name, "laptop");
  EXPECT_EQ(machine_name(settings), profiled_name());
}

TEST(MachineHardware, ProfilesOfGpusHaveTheirNames) {
  const auto of_cpu = profiled_name();
  const auto of_gpus = profiled_name({"NVIDIA H200", "NVIDIA H200"});
  EXPECT_THAT(of_gpus, StartsWith("profiled on NVIDIA H200, "));
  EXPECT_THAT(profiled_name({"B", "A", "B"}),
              StartsWith("profiled on A and B"));
  plans::Hardware measured;
  measured.name = of_cpu;
  EXPECT_THAT(plans::of_another_machine(measured, "x.yaml", of_gpus),
              HasSubstr("this machine is not"));
  measured.name = of_gpus;
  EXPECT_THAT(plans::of_another_machine(measured, "x.yaml", of_cpu),
              HasSubstr("this machine is not"));
  EXPECT_EQ(plans::of_another_machine(measured, "x.yaml", of_gpus), "");
  EXPECT_EQ(plans::of_another_machine(measured, "x.yaml", ""), "")
    << "who plans only cannot tell";
}

TEST(MachineHardware, ProfilesOfGpusAreKeptInAFileOfTheirOwn) {
  EXPECT_NE(cached_hardware_file("gpu"), cached_hardware_file("cpu"));
  EXPECT_EQ(cached_hardware_file("gpu").parent_path(),
            cached_hardware_file("cpu").parent_path());
}

} // namespace
} // namespace troupe::runtime
