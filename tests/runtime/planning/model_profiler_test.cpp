#include "runtime/planning/model_profiler.hpp"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

using plans::ProfileEntry;
using plans::ProfileOp;

const ProfileEntry entry{.op = ProfileOp::forward,
                         .parameters = 1000,
                         .tp = 1,
                         .tokens = 64,
                         .median_s = 0.02};

TEST(ModelProfiler, TheShorterOfEqualMeasurementsCounts) {
  ProfileFindings findings;
  auto shorter = entry, longer = entry;
  shorter.median_s = 0.01;
  longer.median_s = 0.03;
  for (const auto& one : {entry, shorter, longer})
    findings.add(one);
  ASSERT_EQ(findings.entries.size(), 1u);
  EXPECT_EQ(findings.entries.front(), shorter);
}

TEST(ModelProfiler, SizeLayoutModelAndOperationIdentifyAMeasurement) {
  ProfileFindings findings;
  auto others = std::vector(4, entry);
  others[0].op = ProfileOp::train;
  others[1].parameters = 2000;
  others[2].tp = 2;
  others[3].tokens = 128;
  findings.add(entry);
  for (const auto& other : others)
    findings.add(other);
  EXPECT_EQ(findings.entries.size(), 5u);
}

TEST(ModelProfiler, OptimizerStepsOfEqualBytesKeepTheShorterOne) {
  ProfileFindings findings;
  findings.add_optimizer({.amount = 1e6, .seconds = 0.02});
  findings.add_optimizer({.amount = 1e6, .seconds = 0.03});
  findings.add_optimizer({.amount = 2e6, .seconds = 0.04});
  findings.add_optimizer({.amount = 1e6, .seconds = 0.01});
  ASSERT_EQ(findings.optimizer.size(), 2u);
  EXPECT_EQ(findings.optimizer.front().seconds, 0.01);
  EXPECT_EQ(findings.optimizer.back().seconds, 0.04);
}

} // namespace
} // namespace troupe::runtime
