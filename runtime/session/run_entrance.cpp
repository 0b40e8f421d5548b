#include "runtime/session/run_entrance.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/listen_ports.hpp"
#include "config/base/own_address.hpp"
#include "runtime/base/master_bind.hpp"
#include "runtime/session/session_setup.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace troupe::runtime {

namespace {

constexpr const char* probe_prefix = ".probe-";

/// Removes what killed masters left.
void remove_probes(const std::filesystem::path& run_folder) {
  std::error_code ignored; // the folder is not there yet
  for (const auto& entry :
       std::filesystem::directory_iterator(run_folder, ignored))
    if (entry.path().filename().string().starts_with(probe_prefix))
      std::filesystem::remove(entry.path(), ignored);
}

} // namespace

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
  setup.join_reply.files = share_files(basis, where);
  join_actor_ = system_.spawn(actors::join_actor, std::move(setup));
  listen_on_first_free(where, "master", [&](std::uint16_t wanted) {
    port_ = endpoint_->open(join_actor_, where.address, wanted);
  });
  return fmt::format("{}:{}", where.address, port_);
}

/// Writes the probe and spawns the actor that serves files. Its port is one of
/// cluster.ports only if one is left: most runs need none.
actors::FileShare RunEntrance::share_files(const RunBasis& basis,
                                           const ListenPorts& where) {
  const auto& folder = basis.run.attempt.folder;
  auto share = make_file_share(basis, folder / (probe_prefix + basis.run_id));
  if (share.probe.empty())
    return share;
  remove_probes(folder);
  probe_ = share.probe;
  replace_file(probe_, basis.run_id);
  auto setup = make_files_setup(basis);
  net::DataPlaneOptions plane;
  plane.self = actors::master_peer;
  plane.bind_address = where.address;
  plane.token = secret_.token;
  plane.tls = secret_.data_tls();
  setup.listen = [plane, where]() mutable {
    std::unique_ptr<net::DataPlane> opened;
    const auto listen = [&](std::uint16_t port) {
      plane.port = port;
      opened = std::make_unique<net::DataPlane>(plane);
    };
    try {
      listen_on_first_free(where, "master", listen);
    } catch (const FailureError&) {
      listen(0);
    }
    return opened;
  };
  files_actor_ = system_.spawn(actors::files_actor, std::move(setup));
  share.master = files_actor_;
  return share;
}

void RunEntrance::close() {
  endpoint_->close(join_actor_, port_);
}

void RunEntrance::end() {
  if (heartbeat_)
    caf::anon_send_exit(heartbeat_, caf::exit_reason::user_shutdown);
  if (join_actor_)
    caf::anon_send_exit(join_actor_, caf::exit_reason::user_shutdown);
  if (files_actor_)
    caf::anon_send_exit(files_actor_, caf::exit_reason::user_shutdown);
  std::error_code ignored; // the folder may be gone
  if (!probe_.empty())
    std::filesystem::remove(probe_, ignored);
}

} // namespace troupe::runtime
