// Rotary positions in the spellings of config.json: `rope_parameters` of
// transformers 5 (one object, or one per kind of layer), `rope_theta` and
// `rope_scaling` of published models.
#pragma once

#include "config/model/family.hpp"

namespace troupe {

/// Reads them after the sizes of the shape. Throws ConfigError.
void read_rope(const HfObject& config, const Family& family, ModelShape& shape);
/// Prints the published spelling, which transformers 4 and 5 read.
void print_rope(const ModelShape& shape, HfJson& config);

} // namespace troupe
