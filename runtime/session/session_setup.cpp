#include "runtime/session/session_setup.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "config/settings/data_files.hpp"
#include "config/settings/workflow_file.hpp"
#include "models/data/plain_rows.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/launch/launch_command.hpp"
#include "runtime/planning/device_memory.hpp"
#include "runtime/run_folder/build_identity.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/run_folder/run_keeper.hpp"
#include "runtime/session/replica_states.hpp"

#include <filesystem>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

actors::JoinReply make_join_reply(const RunBasis& basis) {
  const PreparedRun& run = basis.run;
  actors::JoinReply join_reply;
  join_reply.incarnation = basis.incarnation;
  join_reply.run_id = basis.run_id;
  join_reply.settings_yaml
    = print_settings(models::with_plain_rows(run.work.settings));
  join_reply.plan_yaml = plans::print(run.work.plan);
  join_reply.data_key = run.data.rows.key;
  if (run.steps.snapshot_every > 0 || run.attempt.snapshot)
    join_reply.keeper = keeper_name(run.attempt.folder);
  join_reply.only_evaluates = run.mode() == RunMode::evaluate;
  for (const auto& [call, room] : run.work.report.rooms)
    join_reply.rooms[call] = {room.responses, room.sequences, room.cache_bytes};
  if (run.work.settings.cluster.device == "gpu")
    join_reply.device_bytes = device_memory_bytes(
      run.work.settings, run.work.plan.cluster.devices_per_node);
  join_reply.run_folder
    = std::filesystem::absolute(run.attempt.folder).string();
  return join_reply;
}

/// Returns the rows of calls in flight that each worker loads.
std::vector<actors::LoadRowsOrder> rows_of(const RunBasis& basis) {
  const RunAttempt& attempt = basis.run.attempt;
  return actors::rows_to_load(
    [&](WorkerId holder) {
      return attempt.snapshot
               ? actors::snapshot_rows_file(attempt.folder,
                                            attempt.snapshot->key, holder)
               : actors::rows_file(attempt.checkpoint.value_or(""), holder);
    },
    basis.start.in_flight, basis.run.work.plan.cluster.num_workers());
}

} // namespace

actors::JoinSetup make_join_actor(const RunBasis& basis,
                                  const RunSecret& secret) {
  actors::JoinSetup setup;
  setup.token = secret.token;
  setup.build = build_identity();
  setup.num_workers = basis.run.work.plan.cluster.num_workers();
  setup.join_reply = make_join_reply(basis);
  return setup;
}

actors::FileShare make_file_share(const RunBasis& basis,
                                  const fs::path& probe) {
  const Settings& settings = basis.run.work.settings;
  actors::FileShare share;
  const auto nodes = basis.run.work.plan.cluster.nodes;
  if (settings.cluster.shared_files != "false"
      && launcher_of(settings, nodes) == LauncherKind::local)
    return share;
  share.mode = settings.cluster.shared_files;
  share.probe = fs::absolute(probe).string();
  share.folder = basis.run.attempt.folder.string();
  for (const auto& role : basis.workflow.roles)
    for (const char* name : {"config.json", "generation_config.json"}) {
      const auto file = fs::path(settings.models.at(role.name).path) / name;
      if (fs::exists(file))
        share.texts[file.lexically_normal().string()] = read_file(file);
    }
  if (is_workflow_file(settings.workflow)) {
    share.workflow = settings.workflow;
    share.texts[share.workflow] = read_file(share.workflow);
  }
  return share;
}

actors::FilesSetup make_files_setup(const RunBasis& basis) {
  const RunAttempt& attempt = basis.run.attempt;
  const auto settings = models::with_plain_rows(basis.run.work.settings);
  actors::FilesSetup setup;
  setup.run_folder = attempt.folder;
  setup.must_be_shared = settings.cluster.shared_files == "true";
  setup.incarnation = basis.incarnation;
  setup.read = {settings.data.ptx, settings.eval.data, settings.run.replay,
                settings.reward.file, RunFolder(attempt.folder).index_file()};
  for (const auto& file : train_files(settings.data))
    setup.read.emplace_back(file.path);
  for (const auto& role : basis.workflow.roles)
    setup.read.emplace_back(settings.models.at(role.name).path);
  for (const auto& load : load_specs(basis)) {
    setup.read.emplace_back(load.order.folder);
    setup.read.emplace_back(load.order.state_file);
  }
  for (const auto& order : rows_of(basis))
    setup.read.insert(setup.read.end(), order.files.begin(), order.files.end());
  return setup;
}

actors::SetupInputs make_setup(const RunBasis& basis,
                               const std::vector<actors::Joined>& workers) {
  actors::SetupInputs setup;
  for (std::uint32_t i = 0; i < workers.size(); ++i) {
    const auto& request = workers[i].request;
    setup.nodes.push_back(workers[i].node);
    setup.peers.push_back(
      {WorkerId{i}, request.host, request.data_port, request.gpus});
  }
  setup.loads = load_specs(basis);
  if (const auto& snapshot = basis.run.attempt.snapshot)
    setup.snapshot = snapshot->key;
  setup.rows = rows_of(basis);
  setup.incarnation = basis.incarnation;
  setup.asks = basis.asks;
  return setup;
}

} // namespace troupe::runtime
