// The sliding window in the spelling of Qwen2 and Qwen3: a switch, a size, and
// the first layer with a window.
#pragma once

#include "config/model/family.hpp"

namespace troupe {

void read_qwen_window(const HfObject& config, ModelShape& shape);
void print_qwen_window(const ModelShape& shape, HfJson& config);

} // namespace troupe
