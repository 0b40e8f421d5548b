#include "runtime/session_setup.hpp"

#include "actors/checkpoint_files.hpp"
#include "runtime/build_identity.hpp"

#include <filesystem>

namespace troupe::runtime {

namespace {

actors::Welcome make_welcome(const RunBasis& basis) {
  const SessionPlan& session = basis.session;
  actors::Welcome welcome;
  welcome.incarnation = basis.incarnation;
  welcome.run_id = basis.run_id;
  welcome.settings_yaml = print_settings(session.settings);
  welcome.plan_yaml = plans::print(session.plan);
  welcome.data_key = session.rows.key;
  welcome.only_evaluates = session.only_evaluates;
  for (const auto& [call, room] : session.report.rooms)
    welcome.rooms[call] = {room.answers, room.cache_bytes};
  welcome.run_folder = std::filesystem::absolute(session.run_folder).string();
  return welcome;
}

} // namespace

actors::LobbySetup make_lobby(const RunBasis& basis, const RunSecret& secret) {
  actors::LobbySetup setup;
  setup.token = secret.token;
  setup.build = build_identity();
  setup.num_workers = basis.session.plan.cluster.num_workers();
  setup.welcome = make_welcome(basis);
  return setup;
}

actors::SetupSetup make_setup(const RunBasis& basis,
                              const std::vector<actors::Joined>& workers) {
  actors::SetupSetup setup;
  for (std::uint32_t i = 0; i < workers.size(); ++i) {
    const auto& request = workers[i].request;
    setup.nodes.push_back(workers[i].node);
    setup.peers.push_back({WorkerId{i}, request.host, request.data_port});
  }
  setup.loads = load_specs(basis);
  setup.rows
    = actors::rows_to_load(basis.session.checkpoint.value_or(""), basis.early,
                           basis.session.plan.cluster.num_workers());
  setup.incarnation = basis.incarnation;
  setup.asks = basis.asks;
  return setup;
}

} // namespace troupe::runtime
