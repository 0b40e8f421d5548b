// Levels whose calls overlap with reloads, or share cores.
#include "plans/search/exact_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::plans {
namespace {

TEST(ExactSearch, AReloadAfterGenerationTakesTime) {
  for (const std::uint32_t generating : {1, 2}) {
    ExactInstance instance{.num_devices = 2, .levels = {{0}, {1}}};
    instance.calls.push_back(
      {.options = {{.num_devices = generating, .seconds = 10}}});
    instance.calls.push_back(
      {.options = {{.num_devices = 1, .seconds = 1, .comes_s = 5}}});
    instance.align = [](std::uint32_t from, std::uint32_t) { return from; };
    instance.fits = [](const SpacePoint&) { return true; };
    const auto found = exact_search(instance, 0, nullptr, ~0ull);
    // on a separate device the weights are loaded while the other device
    // generates
    EXPECT_DOUBLE_EQ(found.seconds, generating == 1 ? 11 : 16);
    EXPECT_DOUBLE_EQ(found.lower_bound_s, 11);
  }
}

/// Two concurrent calls; a pipeline takes longer than a layout that keeps as
/// many devices busy, and leaves half of their cores.
TEST(ExactSearch, OptionsOfOneSizeUseDifferentCores) {
  ExactInstance instance{.num_devices = 4, .num_cores = 2, .levels = {{0, 1}}};
  for (int call = 0; call < 2; ++call)
    instance.calls.push_back(
      {.options = {{.num_devices = 2, .seconds = 10, .cores = 2},
                   {.num_devices = 2, .seconds = 11, .cores = 1}}});
  instance.align = [](std::uint32_t from, std::uint32_t count) {
    return (from + count - 1) / count * count;
  };
  instance.fits = [](const SpacePoint&) { return true; };
  const auto step_s = [&](const SpacePoint& point) {
    double core_s = 0, longest_s = 0;
    for (std::size_t call = 0; call < 2; ++call) {
      const auto& option = instance.calls[call].options[point.options[call]];
      core_s += option.seconds * option.cores;
      longest_s = std::max(longest_s, option.seconds);
    }
    return std::max(core_s / instance.num_cores, longest_s);
  };
  instance.step_s = step_s;
  const auto found = exact_search(instance, 0, nullptr, ~0ull);
  EXPECT_TRUE(found.proved);
  EXPECT_DOUBLE_EQ(found.seconds, 11) << "both as pipelines";
  EXPECT_LE(found.lower_bound_s, 11);
}

} // namespace
} // namespace troupe::plans
