#include "actors/worker_base/run_description.hpp"

#include "actors/worker_base/file_entries.hpp"
#include "actors/worker_base/sample_log.hpp"
#include "plans/workflow/role_shape.hpp"

#include <utility>

namespace troupe::actors {

RunDescription describe_run(const JoinReply& join_reply) {
  RunDescription run;
  run.id = join_reply.run_id;
  run.files
    = std::make_shared<FileSource>(join_reply.files, join_reply.run_folder,
                                   join_reply.run_id, join_reply.worker);
  run.folder = run.files->run_folder();
  run.settings = parse_settings(join_reply.settings_yaml, "config.yaml");
  add_file_entries(run.settings);
  auto calls = run_calls(plans::make_workflow(run.settings),
                         plans::parse_plan(join_reply.plan_yaml, "plan.yaml"),
                         run.settings, join_reply.only_evaluates);
  run.workflow = std::move(calls.workflow);
  run.plan = std::move(calls.plan);
  run.replicas = plans::replicas_of(run.workflow, run.plan);
  for (const auto& [call, room] : join_reply.rooms)
    run.rooms[call] = {.responses = room.responses,
                       .sequences = room.sequences,
                       .cache_bytes = room.cache_bytes};
  run.device_bytes = join_reply.device_bytes;
  for (const auto& role : run.workflow.roles) {
    const std::filesystem::path model = run.settings.models.at(role.name).path;
    run.shapes[role.name] = plans::role_shape(
      read_model_shape(run.files->local(model / "config.json")), role,
      run.settings);
  }
  run.data_key = join_reply.data_key;
  run.keeper = join_reply.keeper;
  return run;
}

} // namespace troupe::actors
