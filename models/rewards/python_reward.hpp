// `reward.kind: python`: the program that loads a user's file and scores with
// its compute_score(data_source, solution_str, ground_truth, extra_info).
#pragma once

#include <string>
#include <vector>

namespace troupe::models {

/// Line that it writes once the file is loaded.
inline constexpr const char* python_reward_ready = "ready";

/// Returns the command line that scores with `function` of `file`.
std::vector<std::string> python_reward_command(const std::string& file,
                                               const std::string& function);

} // namespace troupe::models
