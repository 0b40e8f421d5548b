// Location of parameters in checkpoints of GLM; GLM-4-0414 adds names of norms.
#pragma once

#include "config/model/family.hpp"

namespace troupe {

/// Returns the location of a parameter in checkpoints of `glm`.
StoredAs glm_stored(const ModelShape& shape, const ParameterShape& parameter);

} // namespace troupe
