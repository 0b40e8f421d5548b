#include "runtime/session/worker.hpp"

#include "actors/membership/endpoint.hpp"
#include "actors/protocol/system.hpp"
#include "actors/worker/node_actor.hpp"
#include "config/base/defaults.hpp"
#include "config/base/log.hpp"
#include "models/kernels/threads.hpp"
#include "net/base/gpus.hpp"
#include "net/base/open_files.hpp"
#include "net/collectives/nccl_agreement.hpp"
#include "runtime/launch/stop_signals.hpp"
#include "runtime/run_folder/build_identity.hpp"
#include "runtime/run_folder/run_secret.hpp"
#include "runtime/run_folder/run_status.hpp"

#include "troupe/detail/crash_context.hpp"
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <variant>

namespace troupe::runtime {

namespace {

/// Number of a worker that was started by hand: the join actor assigns one.
constexpr std::uint32_t unknown_number = 0xFFFF'FFFF;

actors::JoinActor find_join_actor(actors::Endpoint& endpoint,
                                  const WorkerOptions& options) {
  const auto found = endpoint.find(options.host, options.port);
  if (const auto* join_actor = std::get_if<actors::JoinActor>(&found))
    return *join_actor;
  if (const auto full = net::why_no_open_file())
    throw FailureError{
      {.code = Errc::io, .who = "worker", .what = *full, .cause = ""}};
  throw FailureError{
    {.code = Errc::peer_lost,
     .who = "worker",
     .what
     = fmt::format("no run listens at {}:{}, or {} is not of its last "
                   "start: copy RUN/.token of the run again",
                   options.host, options.port, options.token_file.string()),
     .cause = std::get<std::string>(found)}};
}

using End = std::optional<Failure>;

ExitCode report_end(const End& end) {
  if (!end)
    return ExitCode::done;
  log::runtime.error(to_string(*end));
  log::flush();
  return end->code == Errc::bad_input ? ExitCode::wrong_input
                                      : ExitCode::failed;
}

} // namespace

ExitCode run_worker(const WorkerOptions& options) {
  if (options.number) { // by a launcher, which keeps its output and ends it
    log::stamp_console();
    leave_term_to_master();
  }
  tell_work_on_crash();
  models::set_compute_threads(static_cast<int>(options.threads));
  const RunSecret secret = read_run_secret(options.token_file);
  net::DataPlaneOptions plane;
  plane.token = secret.token;
  plane.tls = secret.data_tls();
  plane.self = WorkerId{options.number.value_or(unknown_number)};
  plane.bind_address = options.listen.address;
  std::unique_ptr<net::DataPlane> data;
  listen_on_first_free(options.listen, "worker", [&](std::uint16_t port) {
    plane.port = port;
    data = std::make_unique<net::DataPlane>(plane);
  });
  auto setup = std::make_shared<actors::NodeSetup>();
  setup->master_host = options.host;
  setup->join = {.token = secret.token,
                 .build = build_identity(),
                 .host = plane.bind_address,
                 .data_port = data->port(),
                 .pid = static_cast<std::uint32_t>(getpid()),
                 .wanted = options.number.value_or(unknown_number),
                 .gpus = net::nccl_offers(net::find_gpus())};
  setup->data = std::move(data);
  setup->keeps_log = !options.number;
  auto ended = std::make_shared<std::promise<End>>();
  setup->on_end = [ended](End end) { ended->set_value(std::move(end)); };

  const auto salt = options.number.value_or(getpid() % 251);
  actors::SystemConfig config{salt + 1};
  caf::actor_system system{config};
  actors::Endpoint endpoint{system, secret.tls};
  setup->join_actor = find_join_actor(endpoint, options);
  const auto node = system.spawn(actors::node_actor, setup);
  const End end = ended->get_future().get();
  trace::stop();
  const ExitCode code = report_end(end);
  // A failed worker may have threads that wait for lost peers; the orderly end
  // joins all threads, the other one exits at once.
  if (code != ExitCode::done) {
    if (setup->files)
      setup->files->leave();
    _exit(static_cast<int>(code));
  }
  if (setup->files)
    setup->files->close();
  caf::anon_send_exit(node, caf::exit_reason::user_shutdown);
  return code;
}

} // namespace troupe::runtime
