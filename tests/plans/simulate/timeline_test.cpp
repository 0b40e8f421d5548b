#include "plans/presets/presets.hpp"
#include "plans/simulate/timeline.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

namespace troupe::plans {
namespace {

Simulation simulated(const char* name) {
  auto problem = make_problem(shape_7b(), 1, 8);
  problem.hardware.mem_bytes = 0;
  const CostModel costs(problem);
  return simulate(problem, costs,
                  preset(name, problem.workflow, problem.cluster,
                         {.shapes = problem.shapes}));
}

TEST(Timeline, TextHasALinePerDeviceGroupAndALegend) {
  const auto text = ascii_timeline(simulated("openrlhf"), 60);
  EXPECT_THAT(text, HasSubstr("0-3 |"));
  EXPECT_THAT(text, HasSubstr("A actor_gen"));
  EXPECT_THAT(text, HasSubstr("AAAA"));
  EXPECT_THAT(text, HasSubstr("....")) << "groups of their own wait";
}

TEST(Timeline, TextAndSvgHaveTheMemoryOfEachGroup) {
  const auto run = simulated("verl");
  const auto text = ascii_timeline(run, 60);
  EXPECT_THAT(text, ContainsRegex("memory \\|[0-9]+\\|"));
  EXPECT_THAT(text, HasSubstr("9")) << "where the peak is";
  EXPECT_THAT(text, HasSubstr("digits are tenths of "));
  EXPECT_THAT(svg_timeline(run), HasSubstr("<path d=\"M "));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST(Timeline, SvgHasARectanglePerTaskAndALegend) {
  const auto svg = svg_timeline(simulated("megatron"));
  EXPECT_THAT(svg, HasSubstr("<svg xmlns"));
  EXPECT_EQ(count_of(svg, "<rect class=\"task "), 6u);
  EXPECT_EQ(count_of(svg, "<rect class=\"key "), 6u);
  // short moves are named there, since their bars have no space for it
  EXPECT_THAT(svg_timeline(simulated("verl")),
              ContainsRegex(">actor@actor_gen [0-9.e-]+ s</text>"));
}

TEST(Timeline, SvgHasAnAxisOfSecondsAndNamesItsMemory) {
  const auto svg = svg_timeline(simulated("megatron"));
  EXPECT_THAT(svg, ContainsRegex(">0(\\.0+)? s</text>"));
  EXPECT_GE(count_of(svg, "text-anchor=\"middle\">"), 4u) << "ticks";
  EXPECT_THAT(svg, ContainsRegex(">memory, peak [0-9.]+ GB</text>"));
}

TEST(Timeline, SvgIsReadableInDarkMode) {
  const auto svg = svg_timeline(simulated("megatron"));
  EXPECT_THAT(svg, HasSubstr("@media (prefers-color-scheme:dark){"));
  EXPECT_THAT(svg, HasSubstr("class=\"back\"")) << "its own background";
  EXPECT_THAT(svg, Not(HasSubstr("fill=\"#"))) << "colours follow the scheme";
}

TEST(Timeline, ChromeEventsAreWithinTheirStep) {
  const auto run = simulated("separation");
  const auto json = nlohmann::json::parse(chrome_timeline(run));
  std::size_t slices = 0;
  for (const auto& event : json["traceEvents"]) {
    slices += event["ph"] == "X" ? 1 : 0;
    EXPECT_GE(event.value("dur", 0.0), 0);
  }
  EXPECT_GE(slices, run.num_steps * 6u);
}

} // namespace
} // namespace troupe::plans
