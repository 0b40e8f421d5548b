#include "runtime/session/session_setup.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "runtime/run_folder/build_identity.hpp"
#include "runtime/run_folder/run_keeper.hpp"
#include "runtime/session/replica_states.hpp"

#include <filesystem>

namespace troupe::runtime {

namespace {

actors::JoinReply make_join_reply(const RunBasis& basis) {
  const PreparedRun& run = basis.run;
  actors::JoinReply join_reply;
  join_reply.incarnation = basis.incarnation;
  join_reply.run_id = basis.run_id;
  join_reply.settings_yaml = print_settings(run.work.settings);
  join_reply.plan_yaml = plans::print(run.work.plan);
  join_reply.data_key = run.data.rows.key;
  if (run.steps.snapshot_every > 0 || run.attempt.snapshot)
    join_reply.keeper = keeper_name(run.attempt.folder);
  join_reply.only_evaluates = run.mode() == RunMode::evaluate;
  for (const auto& [call, room] : run.work.report.rooms)
    join_reply.rooms[call] = {room.responses, room.cache_bytes};
  join_reply.run_folder
    = std::filesystem::absolute(run.attempt.folder).string();
  return join_reply;
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

actors::SetupInputs make_setup(const RunBasis& basis,
                               const std::vector<actors::Joined>& workers) {
  actors::SetupInputs setup;
  for (std::uint32_t i = 0; i < workers.size(); ++i) {
    const auto& request = workers[i].request;
    setup.nodes.push_back(workers[i].node);
    setup.peers.push_back({WorkerId{i}, request.host, request.data_port});
  }
  setup.loads = load_specs(basis);
  const RunAttempt& attempt = basis.run.attempt;
  if (attempt.snapshot)
    setup.snapshot = attempt.snapshot->key;
  setup.rows = actors::rows_to_load(
    [&](WorkerId holder) {
      return attempt.snapshot
               ? actors::snapshot_rows_file(attempt.folder,
                                            attempt.snapshot->key, holder)
               : actors::rows_file(attempt.checkpoint.value_or(""), holder);
    },
    basis.start.in_flight, basis.run.work.plan.cluster.num_workers());
  setup.incarnation = basis.incarnation;
  setup.asks = basis.asks;
  return setup;
}

} // namespace troupe::runtime
