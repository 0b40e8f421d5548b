// Settings of the runs that `ppo` and `grpo` measure, and first light predicts.
#pragma once

#include "bench.hpp"
#include "card_folder.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::bench {

/// Steps before those that are measured.
inline constexpr int iteration_warm_up_steps = 2;

/// Returns the devices of `--plan`: one with all threads, or one per thread
/// (fewer barriers: 1.4 times faster on `tiny` with two threads).
std::uint32_t iteration_devices(const Options& options);

/// Returns the settings of a run of `workflow`, "ppo" or "grpo", with the
/// models of `folder`.
std::vector<std::string> iteration_settings(const Options& options,
                                            const CardFolder& folder,
                                            const std::string& workflow);

} // namespace troupe::bench
