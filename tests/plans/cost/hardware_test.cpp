#include "config/base/error.hpp"
#include "plans/cost/hardware.hpp"
#include "plans/cost/profile_table.hpp"
#include "plans/memory/lengths.hpp"

#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

#include <stdexcept>

using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

TEST(Hardware, ShippedFilesGiveEveryNumberASource) {
  for (const auto& name : shipped_hardware()) {
    const auto hardware = load_hardware(name);
    EXPECT_EQ(hardware.name, name);
    EXPECT_EQ(hardware.devices_per_node, 8u);
    for (const auto& [path, source] : hardware.sources)
      EXPECT_GT(source.size(), 5u) << name << " " << path;
  }
}

TEST(Hardware, PrintsAndParsesBack) {
  const auto hardware = load_hardware("a100x8");
  const auto again = parse_hardware(print(hardware), "printed");
  EXPECT_EQ(print(again), print(hardware));
  for (const auto& field : hardware_fields())
    EXPECT_EQ(again.*(field.value), hardware.*(field.value)) << field.name;
}

TEST(Hardware, OfAGpuIsTheShippedFileOfItsKind) {
  const auto h100 = load_hardware("h100x8");
  const auto h200 = load_hardware("h200x8");
  const auto known = hardware_of_gpu("NVIDIA H100 80GB HBM3", 9);
  EXPECT_EQ(known.mem_Bps, h100.mem_Bps);
  EXPECT_EQ(known.sources.at("device.mem_Bps"),
            h100.sources.at("device.mem_Bps"));
  EXPECT_EQ(hardware_of_gpu("NVIDIA H200", 9).mem_Bps, h200.mem_Bps);
  for (const char* other : {"NVIDIA A100-SXM4-80GB", "NVIDIA GH200 480GB"}) {
    const auto hardware = hardware_of_gpu(other, 8);
    EXPECT_EQ(hardware.mem_Bps, h100.mem_Bps) << other;
    EXPECT_EQ(hardware.compute_capability, 8) << "as the driver says";
    EXPECT_THAT(hardware.sources.at("device.mem_Bps"),
                HasSubstr("assumed: as h100x8, spec"))
      << other;
    EXPECT_GT(hardware.launch_s, 0) << "what the engine's counts need";
  }
}

TEST(Hardware, NumbersAreSetByTheirPath) {
  auto hardware = load_hardware("laptop");
  set_number(hardware, "links.host_Bps", 3e9, "measured: here");
  EXPECT_EQ(hardware.host_Bps, 3e9);
  EXPECT_EQ(hardware.sources.at("links.host_Bps"), "measured: here");
  EXPECT_THROW(set_number(hardware, "links.hosts_Bps", 1, "x"), InvariantError);
}

std::string hardware_error(const std::string& yaml) {
  return refusal_of([&] { parse_hardware(yaml, "own.yaml"); });
}

TEST(Hardware, MistakesNameLineKeyAndNearest) {
  EXPECT_THAT(hardware_error("device: {gem_flops: 1}"),
              HasSubstr("own.yaml:1: device.gem_flops"));
  EXPECT_THAT(hardware_error("device: {gem_flops: 1}"),
              HasSubstr("'device.gemm_flops'"));
  EXPECT_THAT(hardware_error("device: {gemm_flops: -1}"),
              HasSubstr("expected a positive number of FLOP/s, got -1"));
  EXPECT_THAT(hardware_error("device: {gemm_flops: 1e12}"),
              HasSubstr("device.attn_flops: expected a positive number"));
  EXPECT_THAT(hardware_error("device: {crowded_share: 2}"),
              HasSubstr("device.crowded_share: expected a share of 1 at most, "
                        "got 2; try cores of a node / devices_per_node"));
  EXPECT_THAT(hardware_error("devices: {}"), HasSubstr("device"));
  EXPECT_THAT(refusal_of([] { load_hardware("h100"); }),
              HasSubstr("--hardware: expected one of laptop, h100x8, h200x8, "
                        "a100x8 or a file, got 'h100'; try 'h100x8'"));
}

TEST(Lengths, AreFixedOrFallOffToTheMaximum) {
  const auto fixed = parse_lengths("128", 64);
  EXPECT_EQ(fixed.mean(), 128);
  EXPECT_EQ(fixed.attention_length(), 192);
  EXPECT_EQ(fixed.phases(8).size(), 1u);
  EXPECT_EQ(fixed.phases(8)[0].active, 8);

  const auto ragged = parse_lengths("100:1000", 0);
  double tokens = 0, steps = 0;
  for (const auto& phase : ragged.phases(64)) {
    tokens += phase.steps * phase.active;
    steps += phase.steps;
  }
  EXPECT_NEAR(tokens, 64 * 100, 0.02 * 64 * 100) << "every token is decoded";
  // the mean of the longest of 64 exponentials is 100 * H(64) = 474
  EXPECT_NEAR(steps, 474, 20);
  EXPECT_GT(ragged.attention_length(), 150) << "long answers hold more tokens";
}

TEST(Lengths, MeasuredOnesKeepTheirDistribution) {
  // three quarters of the responses have 100 tokens, one quarter 1000
  std::vector<double> measured(96, 100);
  measured.insert(measured.end(), 32, 1000);
  const Lengths lengths(50, measured);
  EXPECT_EQ(lengths.mean(), 325);
  EXPECT_EQ(lengths.max(), 1000);
  EXPECT_EQ(lengths.survival(99), 1);
  EXPECT_EQ(lengths.survival(100), 0.25);
  EXPECT_EQ(lengths.survival(999), 0.25);
  EXPECT_EQ(lengths.survival(1000), 0);
  EXPECT_NEAR(lengths.attention_length(),
              (0.75 * 150 * 150 + 0.25 * 1050 * 1050) / 375, 1e-6);
  double tokens = 0;
  double steps = 0;
  for (const auto& phase : lengths.phases(128)) {
    tokens += phase.steps * phase.active;
    steps += phase.steps;
  }
  EXPECT_NEAR(tokens, 128 * 325, 0.05 * 128 * 325);
  EXPECT_NEAR(steps, 1000, 1) << "one of 128 is long";
  // an exponential of this mean and maximum has more responses in between
  EXPECT_GT(Lengths(50, 325, 1000).survival(150), lengths.survival(150));
}

TEST(Lengths, MeasuredAlikeAreFixed) {
  const Lengths measured(64, std::vector<double>(10, 128));
  const Lengths fixed(64, 128, 128);
  EXPECT_EQ(measured.phases(8).size(), 1u);
  EXPECT_EQ(measured.attention_length(), fixed.attention_length());
}

TEST(Lengths, InvalidLengthsAreReportedInOneSentence) {
  EXPECT_THROW(parse_lengths("", 0), std::invalid_argument);
  EXPECT_THROW(parse_lengths("0:5", 0), std::invalid_argument);
  EXPECT_THROW(parse_lengths("10:5", 0), std::invalid_argument);
  EXPECT_THROW(parse_lengths("10:x", 0), std::invalid_argument);
}

TEST(Hardware, AProfileOfAnotherMachineIsAWarning) {
  Hardware hardware;
  hardware.name = "profiled on EPYC";
  EXPECT_EQ(of_another_machine(hardware, "hw.yaml", "profiled on EPYC"), "");
  EXPECT_EQ(of_another_machine(hardware, "hw.yaml", "profiled on Xeon"),
            "warning: hw.yaml was profiled on EPYC, this machine is not: "
            "predictions are for that one; `troupe profile` measures this one");
  hardware.name = "h100x8";
  EXPECT_EQ(of_another_machine(hardware, "h100x8", "profiled on Xeon"), "");
}

TEST(ProfileTable, InterpolatesBetweenMeasuredSizesOnly) {
  const ProfileTable table({{ProfileOp::forward, 10, 1, 100, 1.0},
                            {ProfileOp::forward, 10, 1, 300, 2.0},
                            {ProfileOp::forward, 10, 2, 100, 0.5}});
  EXPECT_DOUBLE_EQ(*table.seconds(ProfileOp::forward, 10, 1, 200), 1.5);
  EXPECT_DOUBLE_EQ(*table.seconds(ProfileOp::forward, 10, 1, 600), 3.5);
  EXPECT_FALSE(table.seconds(ProfileOp::forward, 10, 1, 700));
  EXPECT_FALSE(table.seconds(ProfileOp::forward, 10, 2, 100)) << "one size";
  EXPECT_FALSE(table.seconds(ProfileOp::train, 10, 1, 200));
  EXPECT_FALSE(table.seconds(ProfileOp::forward, 11, 1, 200));
  EXPECT_EQ(parse_profile(print(table), "x").entries(), table.entries());
}

TEST(ProfileTable, ScalesOneOperationOfOneModelAndDegree) {
  ProfileTable table({{ProfileOp::forward, 10, 1, 100, 1.0},
                      {ProfileOp::forward, 10, 1, 300, 2.0},
                      {ProfileOp::forward, 10, 2, 100, 0.5},
                      {ProfileOp::forward, 11, 1, 100, 1.0},
                      {ProfileOp::train, 10, 1, 100, 4.0}});
  table.scale(ProfileOp::forward, 10, 1, 1.5);
  EXPECT_EQ(table.entries(),
            ProfileTable({{ProfileOp::forward, 10, 1, 100, 1.5},
                          {ProfileOp::forward, 10, 1, 300, 3.0},
                          {ProfileOp::forward, 10, 2, 100, 0.5},
                          {ProfileOp::forward, 11, 1, 100, 1.0},
                          {ProfileOp::train, 10, 1, 100, 4.0}})
              .entries());
}

} // namespace
} // namespace troupe::plans
