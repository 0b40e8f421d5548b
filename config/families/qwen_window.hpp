// The sliding window as Qwen2 and Qwen3 spell it: a switch, a size, and the
// layer from which on layers see a window.
#pragma once

#include "config/family.hpp"

namespace troupe {

void read_qwen_window(const HfObject& config, ModelShape& shape);
void print_qwen_window(const ModelShape& shape, HfJson& config);

} // namespace troupe
