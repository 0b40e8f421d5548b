// A hint for whoever asks for a well-known family that is not read: the trait
// of its layers that ModelShape does not have yet. A user learns from it that
// no setting helps, and whoever adds the family what to begin with.
#pragma once

#include <string>

namespace troupe {

/// Returns what a family that is not in model_families() would need, as a hint
/// of an error; "" for a name that is not known.
std::string missing_trait(const std::string& model_type);

} // namespace troupe
