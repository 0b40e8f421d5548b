// Calls that run ahead of a checkpoint: with lags, training waits for calls of
// later steps (plans::steps_ahead), whose weights are gone after it. So a
// checkpoint keeps what they answered and the rows that they made.
#pragma once

#include "actors/master_messages.hpp"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <span>
#include <vector>

namespace troupe::actors {

/// What each worker holds of the calls' rows.
std::map<WorkerId, std::vector<RowSet>>
rows_by_holder(std::span<const EarlyCall> calls);
/// Spreads the rows of any number of workers over `num_workers` new ones: the
/// holder of those that worker `holder` had.
WorkerId new_holder(WorkerId holder, std::uint32_t num_workers);
/// The calls with the workers that hold their rows from now on.
std::vector<EarlyCall> with_new_holders(std::vector<EarlyCall> calls,
                                        std::uint32_t num_workers);

/// Numbers to the bit, less times and bytes moved. The other way throws
/// nlohmann::json::exception where it does not fit.
nlohmann::json json_of(const EarlyCall& call);
EarlyCall early_call_of(const nlohmann::json& value);

} // namespace troupe::actors
