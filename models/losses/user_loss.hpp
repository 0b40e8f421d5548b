// A user-defined loss (troupe/loss.hpp) as an entry of the table of losses.
#pragma once

#include "models/losses/loss.hpp"

#include "troupe/workflow.hpp"

namespace troupe::models {

/// Returns the entry; `role` is the prefix of its metrics; with a scalar head
/// the loss gets values and scores instead of log-probabilities.
LossEntry user_loss_entry(std::string name,
                          const troupe::detail::UserCall& call,
                          bool scalar_head);

} // namespace troupe::models
