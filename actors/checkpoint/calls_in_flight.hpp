// Calls that run ahead of a checkpoint: with lags, training waits for calls of
// later steps (plans::steps_ahead), which used weights that the checkpoint no
// longer has. So a checkpoint keeps their results and the rows that they
// produced.
#pragma once

#include "actors/protocol/master_messages.hpp"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <span>
#include <vector>

namespace troupe::actors {

/// Returns the rows of the calls that each worker holds.
std::map<WorkerId, std::vector<RowSet>>
rows_by_holder(std::span<const CallInFlight> calls);
/// Returns the new holder of the rows of worker `holder` when the rows of any
/// number of workers are spread over `num_workers` new ones.
WorkerId new_holder(WorkerId holder, std::uint32_t num_workers);
/// Returns the calls with the workers that hold their rows from now on.
std::vector<CallInFlight> with_new_holders(std::vector<CallInFlight> calls,
                                           std::uint32_t num_workers);

/// Serializes a call: numbers bit for bit, without times and bytes moved. The
/// inverse throws nlohmann::json::exception if the JSON does not fit.
nlohmann::json json_of(const CallInFlight& call);
CallInFlight call_in_flight_of(const nlohmann::json& value);

} // namespace troupe::actors
