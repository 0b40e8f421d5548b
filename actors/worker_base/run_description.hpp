// Description of a run, as every worker parses it from the master's join reply:
// settings, workflow, plan, replicas, shapes of models. Read-only.
#pragma once

#include "actors/protocol/messages.hpp"
#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"
#include "plans/memory/response_room.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/weights/replicas.hpp"
#include "plans/workflow/workflow.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace troupe::actors {

struct RunDescription {
  std::string id; ///< random; names shared memory and groups
  std::filesystem::path folder;
  Settings settings;
  plans::Workflow workflow;
  plans::ExecutionPlan plan;
  plans::Replicas replicas;
  plans::ResponseRooms rooms;               ///< for the calls that generate
  std::map<std::string, ModelShape> shapes; ///< by role
  std::string data_key; ///< key of the index of data.train in the run folder
  std::string keeper;   ///< name of the hosts' keepers; empty: no snapshots
};

/// Parses a join reply. Throws ConfigError under the same conditions as the
/// master.
RunDescription describe_run(const JoinReply& join_reply);

} // namespace troupe::actors
