#include "runtime/session/run_entrance.hpp"

#include "runtime/base/listen_ports.hpp"
#include "runtime/base/own_address.hpp"
#include "runtime/session/session_setup.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace troupe::runtime {

std::string RunEntrance::open(const RunBasis& basis,
                              const EntranceListeners& listeners) {
  const PlannedWork& work = basis.run.work;
  const auto& cluster = work.settings.cluster;
  heartbeat_ = system_.spawn(
    actors::heartbeat_actor,
    actors::HeartbeatSetup{.asks = basis.asks,
                           .on_suspect = listeners.on_suspect,
                           .on_lost = listeners.on_lost,
                           .silence_limit
                           = std::chrono::seconds(cluster.silence_s.value())});
  const auto where = listen_ports(master_bind(cluster, work.plan.cluster.nodes),
                                  cluster.ports);
  const bool encrypts_data
    = cluster.tls != "off" && !is_loopback(where.address);
  secret_ = cluster.secret.empty()
              ? make_run_secret(encrypts_data)
              : lasting_run_secret(cluster.secret, encrypts_data);
  endpoint_.emplace(system_, secret_.tls);
  auto setup = make_join_actor(basis, secret_);
  setup.on_joined = listeners.on_joined;
  setup.on_full = listeners.on_full;
  setup.heartbeat = heartbeat_;
  join_actor_ = system_.spawn(actors::join_actor, std::move(setup));
  listen_on_first_free(where, "master", [&](std::uint16_t wanted) {
    port_ = endpoint_->open(join_actor_, where.address, wanted);
  });
  return fmt::format("{}:{}", where.address, port_);
}

void RunEntrance::close() {
  endpoint_->close(join_actor_, port_);
}

void RunEntrance::end() {
  if (heartbeat_)
    caf::anon_send_exit(heartbeat_, caf::exit_reason::user_shutdown);
  if (join_actor_)
    caf::anon_send_exit(join_actor_, caf::exit_reason::user_shutdown);
}

} // namespace troupe::runtime
