// What this program has registered by name, for telling two binaries apart.
#pragma once

#include <string>
#include <vector>

namespace troupe::models {

/// "loss sft_loss", "function ppo_advantages", ..
std::vector<std::string> registered_names();

} // namespace troupe::models
