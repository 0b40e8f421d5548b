#include "runtime/planner/compare_rows.hpp"

#include <gmock/gmock.h>

#include <sstream>

using ::testing::HasSubstr;
using ::testing::Not;

namespace troupe::runtime {
namespace {

std::vector<CompareRow> two_plans() {
  std::vector<CompareRow> rows(2);
  rows[0] = {.workload = "sevens",
             .plan = "openrlhf_colocated",
             .step_s = 13,
             .pflops = 0.12345,
             .tokens_per_s_device = 1795.6,
             .idle_share = 0.304,
             .peak_bytes = 75'123'000'000,
             .peak_task = "critic_train",
             .moved_bytes = 1.713e12};
  rows[1] = {.workload = "sevens", .plan = "single", .reason = "too large"};
  return rows;
}

TEST(CompareRows, OmitsColumnsWithoutInformation) {
  const auto table = compare_table(two_plans(), CompareTable::of_config);
  EXPECT_THAT(table, HasSubstr("s/step"));
  for (const auto* title : {"measured", "error", "process", "workload"})
    EXPECT_THAT(table, Not(HasSubstr(title)));
  auto rows = two_plans();
  rows[0].measured_s = 11;
  const auto measured = compare_table(rows, CompareTable::of_config);
  EXPECT_THAT(measured, HasSubstr("measured s  error"));
  EXPECT_THAT(measured, HasSubstr("11.0"));
}

TEST(CompareRows, TheTableHasThreeDigitsAndFitsATerminal) {
  const auto table = compare_table(two_plans(), CompareTable::of_config);
  for (const auto* number : {"13.0", "0.123", "1800", "30 %", "75.1", "1710"})
    EXPECT_THAT(table, HasSubstr(number));
  EXPECT_THAT(table, HasSubstr("single: too large"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 100u) << line;
}

TEST(CompareRows, ASuiteNamesTheWorkloadOfEachRow) {
  const auto table = compare_table(two_plans(), CompareTable::of_suite);
  EXPECT_THAT(table, HasSubstr("workload"));
  EXPECT_THAT(table, HasSubstr("sevens single: too large"));
}

} // namespace
} // namespace troupe::runtime
