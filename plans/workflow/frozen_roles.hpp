// Which roles have weights that nothing but their own kernels reads and nothing
// changes: neither training nor moves, checkpoints or servers. A GPU stores
// them as kernels read them, 2 bytes a parameter where masters beside take 6.
#pragma once

#include "plans/workflow/workflow.hpp"

#include <cstdint>
#include <string_view>

namespace troupe::plans {

/// The weights of a role: frozen, if nothing changes them and only its own
/// kernels read them.
enum class RoleWeights : std::uint8_t { changing, frozen };

/// Returns what holds for a role's weights; an unknown role's may change.
RoleWeights weights_of_role(const Workflow& workflow, std::string_view role);

} // namespace troupe::plans
