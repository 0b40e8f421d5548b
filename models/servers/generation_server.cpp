#include "models/servers/generation_server.hpp"

#include "config/base/error.hpp"
#include "models/servers/vllm_json.hpp"

namespace troupe::models {

namespace {

using namespace std::chrono_literals;

/// Loading the largest models and compiling their kernels takes minutes.
constexpr auto server_ready_within = 20min;
constexpr auto server_look_every = 100ms;
constexpr auto server_health_within = 2s;
/// vLLM 0.32 exits within 3.6 s after its engine or worker was killed.
constexpr auto server_ends_within = 10s;
/// The longest responses of large models on CPUs; an update is much shorter.
constexpr auto server_answers_within = 30min;

[[noreturn]] void server_failed(Errc code, const std::string& who,
                                const std::string& what,
                                const std::string& cause = "") {
  throw FailureError({.code = code, .who = who, .what = what, .cause = cause});
}

net::HttpLimits limits_of(const RunContext& context,
                          std::chrono::milliseconds within,
                          std::size_t connections = 1) {
  return {.within = within,
          .connections = connections,
          .stop = context.stop,
          .progress = context.progress};
}

} // namespace

GenerationServer::GenerationServer(ServerSpec spec)
  : http_(std::move(spec.url), spec.program.name),
    connections_(spec.connections),
    process_(std::move(spec.program)) {}

void GenerationServer::start(const RunContext& context) {
  if (process_.is_ours())
    process_.start();
  wait_until_ready(context);
  // a server that runs already may have been made ready by an earlier run
  const auto reply = http_.send(
    {.target = "/init_weight_transfer_engine", .body = R"({"init_info":{}})"},
    limits_of(context, server_answers_within));
  require_answer(reply, "/init_weight_transfer_engine");
}

void GenerationServer::stop() {
  process_.end();
}

void GenerationServer::wait_until_ready(const RunContext& context) {
  const auto end = net::HttpClock::now() + server_ready_within;
  for (;;) {
    const auto reply = http_.send({.target = "/health", .is_get = true},
                                  limits_of(context, server_health_within));
    if (reply.answered())
      return;
    if (process_.wait_for_end(server_look_every))
      server_failed(Errc::peer_lost, name(), "it ended before it was ready",
                    process_.end_text());
    if (!process_.is_ours() && reply.error && !reply.late())
      server_failed(Errc::peer_lost, name(),
                    "nothing answers at port " + http_.url().port,
                    reply.text());
    if (net::HttpClock::now() > end)
      server_failed(Errc::deadline, name(), "it is not ready", reply.text());
  }
}

/// Throws what a failed request means. A server whose engine has died answers
/// 500 or closes the connection, and ends seconds later: whether it does tells
/// a loss from a refusal.
void GenerationServer::require_answer(const net::HttpReply& reply,
                                      const std::string& route) {
  if (reply.answered())
    return;
  if (reply.late())
    server_failed(Errc::deadline, name(), "no answer to " + route);
  const bool may_be_dead = reply.error || reply.status / 100 == 5;
  if (may_be_dead && process_.is_ours()
      && process_.wait_for_end(server_ends_within))
    server_failed(Errc::peer_lost, name(), "it ended during " + route,
                  process_.end_text());
  if (reply.error)
    server_failed(Errc::peer_lost, name(), "it was lost during " + route,
                  reply.text());
  server_failed(Errc::bad_input, name(),
                "it refused " + route + " (" + std::to_string(reply.status)
                  + "): " + vllm::error_sentence(reply.body));
}

std::string GenerationServer::ask(const net::HttpCall& call,
                                  const RunContext& context) {
  auto reply = http_.send(call, limits_of(context, server_answers_within));
  require_answer(reply, call.target);
  return std::move(reply.body);
}

void GenerationServer::update(const SentWeights& weights,
                              const std::string& version,
                              const RunContext& context) {
  ask({.target = "/pause?mode=keep"}, context);
  ask({.target = "/start_weight_update"}, context);
  ask({.target = "/update_weights",
       .body = vllm::update_body(weights.path(), weights.tensors())},
      context);
  ask({.target = "/finish_weight_update", .body = vllm::finish_body(version)},
      context);
  const auto has = vllm::read_version(
    ask({.target = "/weight_info", .is_get = true}, context));
  if (has != version)
    server_failed(Errc::stale, name(),
                  "it has weights '" + has + "' after an update to '" + version
                    + "'");
  ask({.target = "/resume"}, context);
}

std::vector<float> GenerationServer::score(std::span<const std::int32_t> ids,
                                           const RunContext& context) {
  return vllm::read_scores(
    ask({.target = "/inference/v1/generate", .body = vllm::score_body(ids)},
        context),
    ids);
}

void GenerationServer::generate(std::span<const ServerRequest> requests,
                                const GenerateOptions& options,
                                const RunContext& context,
                                const OnAnswer& on_answer) {
  const std::string route = "/inference/v1/generate";
  std::vector<net::HttpCall> calls;
  for (const auto& request : requests)
    calls.push_back(
      {.target = route, .body = vllm::generate_body(request, options)});
  http_.send_all(calls, limits_of(context, server_answers_within, connections_),
                 [&](std::size_t i, const net::HttpReply& reply) {
                   require_answer(reply, route);
                   on_answer(i, vllm::read_answer(reply.body));
                 });
}

} // namespace troupe::models
