#include "plans/cost/hardware_sources.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace troupe::plans {
namespace {

TEST(HardwareSources, TheFirstWordOfASourceIsItsKind) {
  EXPECT_EQ(kind_of_source("measured: ring of 8"), SourceKind::measured);
  EXPECT_EQ(kind_of_source("fitted to 3 runs"), SourceKind::fitted);
  EXPECT_EQ(kind_of_source("spec: data sheet"), SourceKind::data_sheet);
  EXPECT_EQ(kind_of_source("assumed"), SourceKind::assumed);
  EXPECT_EQ(kind_of_source("own.yaml"), SourceKind::given);
}

TEST(HardwareSources, ShippedFilesNameTheKindOfEachNumber) {
  for (const auto& name : shipped_hardware()) {
    const auto hardware = load_hardware(name);
    EXPECT_EQ(count_sources(hardware)[SourceKind::given], 0u) << name;
    if (name != "a100x8") {
      EXPECT_THAT(basis_of(hardware),
                  HasSubstr(name + ", never measured on this hardware"));
    }
  }
}

/// A file whose constants follow measurements of ReaL's authors on such a
/// machine.
TEST(HardwareSources, NumbersFittedToPublishedMeasurementsAreMarked) {
  const auto hardware = load_hardware("a100x8");
  const auto fitted = count_sources(hardware)[SourceKind::fitted];
  EXPECT_THAT(basis_of(hardware),
              AllOf(HasSubstr("predicted for a100x8, fitted to published "
                              "measurements ("
                              + std::to_string(fitted) + " numbers): "),
                    Not(HasSubstr("never measured"))));
}

TEST(HardwareSources, NoNumberOfAnH100IsFittedToReaLsMeasurements) {
  for (const char* name : {"h100x8", "h200x8"}) {
    const auto hardware = load_hardware(name);
    EXPECT_EQ(count_sources(hardware)[SourceKind::fitted], 0u) << name;
    for (const auto& [path, source] : hardware.sources)
      EXPECT_THAT(source, Not(HasSubstr("a100"))) << name << " " << path;
  }
  EXPECT_GT(count_sources(load_hardware("a100x8"))[SourceKind::fitted], 10u);
}

TEST(HardwareSources, ACpuWithoutACacheRateHasAShareOfItsMemoryRate) {
  const auto cache_rate = [](const std::string& device) {
    return parse_hardware(
             "device: {gemm_flops: 1e10, attn_flops: 1e10, mem_Bps: 1e10"
               + device
               + "}\nlinks: {intra_Bps: 1e9, inter_Bps: 1e9, host_Bps: 1e9, "
                 "zero_Bps: 1e9}\n",
             "own.yaml")
      .cache_Bps;
  };
  EXPECT_DOUBLE_EQ(cache_rate(""), 6e9);
  EXPECT_DOUBLE_EQ(cache_rate(", cache_Bps: 0"), 6e9);
  EXPECT_DOUBLE_EQ(cache_rate(", cache_Bps: 5e9"), 5e9);
  EXPECT_DOUBLE_EQ(cache_rate(", mem_bytes: 8e10"), 0) << "a GPU: mem_Bps";
}

TEST(HardwareSources, AProfileNamesItsMachine) {
  const auto hardware = parse_hardware(
    "name: profiled on EPYC\n"
    "device: {gemm_flops: {value: 1e10, source: 'measured: inference'},\n"
    "         attn_flops: 1e10, mem_Bps: {value: 1e10, source: assumed}}\n"
    "links: {intra_Bps: 1e9, inter_Bps: 1e9, host_Bps: 1e9, zero_Bps: 1e9}\n",
    "own.yaml");
  EXPECT_EQ(basis_of(hardware),
            "predicted for profiled on EPYC: of its numbers 1 measured, 1 "
            "assumed, 5 given");
}

} // namespace
} // namespace troupe::plans
