// Checkpoints that store gate and up of an MLP in one tensor, `gate_up_proj`
// (Phi-3, GLM).
#pragma once

#include "config/model/model_shape.hpp"

namespace troupe {

/// Returns the location of a gate or up projection; the parameter's own for any
/// other.
StoredAs stored_in_gate_up(const ModelShape& shape,
                           const ParameterShape& parameter);

} // namespace troupe
