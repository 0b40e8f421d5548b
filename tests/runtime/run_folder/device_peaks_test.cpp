#include "runtime/run_folder/device_peaks.hpp"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

TEST(DevicePeaks, AreBesideWhatThePlanForesaw) {
  const DevicePeak peak{.peak_bytes = 12'000'000, .at_task = "actor_train"};
  EXPECT_EQ(peak_text(peak), "peak memory 12.0 MB in actor_train");
  EXPECT_EQ(peak_text(peak, 13'000'000),
            "peak memory 12.0 MB in actor_train, 13.0 MB planned");
}

TEST(DevicePeaks, OfAFullDeviceSayThePlanAndWhatWasFound) {
  const std::vector<plans::DevicePeak> planned
    = {{.device = Rank{0}, .peak_bytes = 1'000'000},
       {.device = Rank{1}, .peak_bytes = 3'000'000, .at_task = "actor_gen"}};
  EXPECT_EQ(planned_and_found(planned, {}),
            "the plan has at most 3.0 MB on device 1, in actor_gen; no task "
            "has ended yet");
  const std::map<Rank, DevicePeak> found
    = {{Rank{0}, {.peak_bytes = 4'000'000, .at_task = "ref_inf"}},
       {Rank{1}, {.peak_bytes = 2'000'000, .at_task = "actor_gen"}}};
  EXPECT_EQ(planned_and_found(planned, found),
            "the plan has at most 3.0 MB on device 1, in actor_gen; the most "
            "so far was 4.0 MB on device 0, in ref_inf");
}

} // namespace
} // namespace troupe::runtime
