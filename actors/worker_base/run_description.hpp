// Description of a run, as every worker parses it from the master's join reply:
// settings, workflow, plan, replicas, shapes of models. Read-only.
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/worker_base/file_source.hpp"
#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"
#include "plans/memory/response_room.hpp"
#include "plans/plan/execution_plan.hpp"
#include "plans/weights/replicas.hpp"
#include "plans/workflow/workflow.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace troupe::actors {

struct RunDescription {
  /// The way to files of the master's host; paths below are as it has them.
  std::shared_ptr<FileSource> files = std::make_shared<FileSource>();
  std::string id;               ///< random; names shared memory and groups
  std::filesystem::path folder; ///< where this process writes the run's files
  Settings settings;
  plans::Workflow workflow;
  plans::ExecutionPlan plan;
  plans::Replicas replicas;
  plans::ResponseRooms rooms;               ///< for the calls that generate
  std::uint64_t device_bytes = 0;           ///< as JoinReply says
  std::map<std::string, ModelShape> shapes; ///< by role
  std::string data_key; ///< key of the index of data.train in the run folder
  std::string keeper;   ///< name of the hosts' keepers; empty: no snapshots
};

/// Parses a join reply. Throws ConfigError under the same conditions as the
/// master.
RunDescription describe_run(const JoinReply& join_reply);

} // namespace troupe::actors
