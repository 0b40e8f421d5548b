#include "runtime/session/run_actors.hpp"

#include "runtime/page/trace_server.hpp"
#include "runtime/session/session_setup.hpp"

#include <chrono>
#include <utility>

namespace troupe::runtime {

std::string RunActors::open_to_agents(const std::string& token) {
  const auto& settings = basis_.run.work.settings;
  const auto& agents = agents_of(settings);
  const auto page = page_options(settings.cluster.bind,
                                 static_cast<std::uint16_t>(agents.port));
  agents_ = std::make_unique<actors::AgentEntrance>(
    system_, actors::AgentEntranceSetup{
               .address = page.address,
               .port = page.port,
               .token = token,
               .timeout = std::chrono::duration<double>(agents.timeout_s),
               .incarnation = basis_.incarnation,
               .asks = basis_.asks});
  return agents_->endpoint().base_url;
}

void RunActors::load(const std::vector<actors::Joined>& workers,
                     const LoadListeners& listeners) {
  auto setup = make_setup(basis_, workers);
  if (agents_)
    setup.agents = agents_->endpoint();
  nodes_ = setup.nodes;
  setup.on_ready = listeners.on_ready;
  setup.on_failure = listeners.on_failure;
  setup_ = system_.spawn(actors::setup_actor, std::move(setup));
  all_.push_back(setup_.address());
  caf::anon_send(setup_, actors::start_atom::value);
}

void RunActors::spawn_master(const std::vector<actors::SetupDone>& ready,
                             MasterEvents events) {
  auto made
    = runtime::spawn_master(system_, basis_, ready, nodes_, std::move(events));
  master_ = made.master;
  all_.insert(all_.end(), made.all.begin(), made.all.end());
}

void RunActors::begin_move_check(
  const std::vector<actors::SetupDone>& ready,
  std::function<void(const actors::RunEnd&)> on_end) {
  auto made = spawn_move_check(system_, basis_, ready, std::move(on_end));
  move_check_ = made.check;
  all_.insert(all_.end(), made.all.begin(), made.all.end());
  caf::anon_send(move_check_, actors::start_atom::value);
}

void RunActors::end() {
  agents_.reset();
  for (const auto& actor : all_)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

} // namespace troupe::runtime
