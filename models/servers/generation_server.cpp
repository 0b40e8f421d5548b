#include "models/servers/generation_server.hpp"

#include "models/servers/error_sentence.hpp"

namespace troupe::models {

namespace {

using namespace std::chrono_literals;

/// Loading the largest models and compiling their kernels takes minutes.
constexpr auto server_ready_within = 20min;
constexpr auto server_look_every = 100ms;
constexpr auto server_health_within = 2s;
constexpr auto server_cleans_up_within = 30s;
constexpr unsigned server_unavailable = 503; ///< /health, the engine dead
/// vLLM 0.32 refuses connections 0.3 s after its engine or worker was killed,
/// and exits within 3.6 s.
constexpr auto server_ends_within = 10s;
constexpr auto server_lives_after = 4s;
/// The longest responses of large models on CPUs; an update is much shorter.
constexpr auto server_answers_within = 30min;
/// The time without a reply after which a server is asked whether it lives: one
/// whose engine was killed may keep a request open for ever, and so not end.
constexpr auto server_silent_for = 10s;

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
          .progress = context.progress,
          .on_silence = {}};
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
  prepare(context);
  process_.note_memory();
}

void GenerationServer::stop() {
  process_.end();
}

void GenerationServer::wait_until_ready(const RunContext& context) {
  const auto end = net::HttpClock::now() + server_ready_within;
  for (;;) {
    const auto reply = http_.send({.target = "/health", .is_get = true},
                                  limits_of(context, server_health_within));
    // an answer may be another's, who has the port that ours did not get
    if (process_.wait_for_end(reply.answered() ? 0ms : server_look_every))
      server_failed(Errc::peer_lost, name(), "it ended before it was ready",
                    process_.end_text());
    if (reply.answered())
      return;
    if (!process_.is_ours() && reply.error && !reply.late())
      server_failed(Errc::peer_lost, name(),
                    "nothing answers at port " + http_.url().port,
                    reply.text());
    if (net::HttpClock::now() > end)
      server_failed(Errc::deadline, name(), "it is not ready", reply.text());
  }
}

/// Returns why the server is dead, "" if it is not, after a request that failed
/// as those of dead ones do: one whose engine has died answers 500 or closes
/// the connection, and ends seconds later.
std::string GenerationServer::why_dead(const RunContext& context) {
  const auto begin = net::HttpClock::now();
  const auto lasted = [&] { return net::HttpClock::now() - begin; };
  do {
    if (process_.wait_for_end(server_look_every))
      return process_.end_text();
    const auto health = http_.send({.target = "/health", .is_get = true},
                                   limits_of(context, server_health_within));
    if (!health.error && health.status == server_unavailable)
      return "/health says so: " + health.text();
    if (health.answered() && lasted() > server_lives_after)
      break;
  } while (process_.is_ours() && lasted() < server_ends_within);
  return "";
}

/// Throws what a failed request means.
void GenerationServer::require_answer(const net::HttpReply& reply,
                                      const std::string& route,
                                      const RunContext& context) {
  if (reply.answered())
    return;
  if (reply.late())
    server_failed(Errc::deadline, name(), "no answer to " + route);
  if (reply.error || reply.status / 100 == 5)
    if (const auto why = why_dead(context); !why.empty())
      server_failed(Errc::peer_lost, name(), "it died during " + route, why);
  if (reply.error)
    server_failed(Errc::peer_lost, name(), "it was lost during " + route,
                  reply.text());
  server_failed(Errc::refused, name(),
                "it refused " + route + " (" + std::to_string(reply.status)
                  + "): " + error_sentence(reply.body));
}

/// Throws FailureError (peer_lost) if the server has died while a request to
/// `route` is open. One that is slow to say how it is has not.
void GenerationServer::require_life(const std::string& route,
                                    const RunContext& context) {
  const auto health = http_.send({.target = "/health", .is_get = true},
                                 limits_of(context, server_health_within));
  if (health.answered() || health.late())
    return;
  auto why = why_dead(context);
  if (why.empty() && health.error)
    why = "it takes no connections: " + health.text();
  if (!why.empty())
    server_failed(Errc::peer_lost, name(), "it died during " + route, why);
}

net::HttpLimits GenerationServer::answer_limits(const std::string& route,
                                                const RunContext& context,
                                                std::size_t connections) {
  auto limits = limits_of(context, server_answers_within, connections);
  limits.on_silence = [&] { require_life(route, context); };
  limits.silence = server_silent_for;
  return limits;
}

std::string GenerationServer::ask(const net::HttpCall& call,
                                  const RunContext& context,
                                  const std::function<void()>& watch) {
  auto limits = answer_limits(call.target, context, 1);
  if (watch)
    limits.on_silence = [&, look = limits.on_silence] {
      look();
      watch();
    };
  auto reply = http_.send(call, limits);
  require_answer(reply, call.target, context);
  return std::move(reply.body);
}

bool GenerationServer::ask_in_vain(const net::HttpCall& call,
                                   const RunContext& context) {
  return http_.send(call, limits_of(context, server_cleans_up_within))
    .answered();
}

void GenerationServer::require_version(const std::string& has,
                                       const std::string& version) {
  if (has != version)
    server_failed(Errc::stale, name(),
                  "it has weights '" + has + "' after an update to '" + version
                    + "'");
}

void GenerationServer::update(const SentWeights& weights,
                              const SentWeights* base,
                              const std::string& version,
                              const RunContext& context) {
  ask(pause_call(), context);
  try {
    take_weights(weights, base, version, context);
  } catch (const FailureError& error) {
    if (error.failure().code == Errc::peer_lost)
      throw;
    if (!give_up_update(context)) {
      auto failure = error.failure();
      failure.what += "; it stays paused: some of its weights may be new";
      throw FailureError(failure);
    }
    // a server that is not ours serves others too, with the weights it has
    ask_in_vain(resume_call(), context);
    throw;
  }
  ask(resume_call(), context);
  process_.note_memory();
}

std::vector<float> GenerationServer::score(std::span<const std::int32_t> ids,
                                           const RunContext& context) {
  return read_scores(ask(score_call(ids), context), ids);
}

void GenerationServer::generate(std::span<const ServerRequest> requests,
                                const GenerateOptions& options,
                                const RunContext& context,
                                const OnAnswer& on_answer) {
  generate_coming(net::all_of(requests), options, context, on_answer);
}

void GenerationServer::generate_coming(
  const net::Coming<ServerRequest>& requests, const GenerateOptions& options,
  const RunContext& context, const OnAnswer& on_answer) {
  std::string route; // of all
  const auto take_calls = [&] {
    const auto [come, closed] = requests.take();
    net::Coming<net::HttpCall>::Intake calls{.requests = {}, .closed = closed};
    for (const auto& request : come) {
      calls.requests.push_back(generate_call(request, options));
      route = calls.requests.back().target;
    }
    return calls;
  };
  http_.send_coming({.take = take_calls, .listen = requests.listen},
                    answer_limits(route, context, connections_),
                    [&](std::size_t i, const net::HttpReply& reply) {
                      require_answer(reply, route, context);
                      on_answer(i, read_answer(reply.body));
                    });
}

} // namespace troupe::models
