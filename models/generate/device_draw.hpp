// The options under which a device draws tokens itself
// (models/kernels/token_draw.hpp). It gets options and names; under all other
// options its logits come to the host, whose sampler draws.
#pragma once

#include "models/generate/generate_options.hpp"
#include "models/generate/gumbel.hpp"
#include "models/kernels/token_draw.hpp"

#include <cstdint>
#include <optional>

namespace troupe::models {

/// Returns what a device draws among. Nothing if only the host's sampler can: a
/// repetition penalty and stop tokens that are not allowed yet depend on the
/// tokens so far, and a sampling mask lists ids. Depends on the options alone,
/// so that a sample's tokens do not depend on what else is in a pass (I2).
std::optional<DrawFilters> device_filters(const GenerateOptions& options,
                                          std::int64_t vocab_size);

/// Returns the name of a draw as kernels take it.
DrawKey draw_key(const DrawName& name);

} // namespace troupe::models
