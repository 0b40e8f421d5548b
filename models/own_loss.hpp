// An own program's loss (troupe/loss.hpp) as an entry of the table of losses.
#pragma once

#include "models/loss.hpp"

#include "troupe/workflow.hpp"

namespace troupe::models {

/// `role` gives the prefix of its metrics; a scalar head gives values and
/// scores in place of log-probabilities.
LossEntry own_loss_entry(std::string name, const troupe::detail::OwnCall& call,
                         bool scalar_head);

} // namespace troupe::models
