#include "plans/presets.hpp"
#include "plans/timeline.hpp"

#include "problem_support.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

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

TEST(Timeline, TextHasALineAGroupOfDevicesAndALegend) {
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

TEST(Timeline, SvgHasARectangleATask) {
  const auto svg = svg_timeline(simulated("megatron"));
  EXPECT_THAT(svg, HasSubstr("<svg xmlns"));
  std::size_t count = 0;
  for (auto at = svg.find("<rect"); at != std::string::npos;
       at = svg.find("<rect", at + 1))
    ++count;
  EXPECT_EQ(count, 6u);
}

TEST(Timeline, ChromeEventsLieInTheirStep) {
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
