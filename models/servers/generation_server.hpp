// A vLLM server as an engine: start, ready, generate, pause, update, verify,
// resume, stop. Each is one call that returns when it is done or throws why
// not; who decides when is models/servers/served_generation.hpp.
//
// Failures: peer_lost, the server is gone (ask `start` again); deadline, it did
// not answer in time; bad_input, it refused, in its own words.
#pragma once

#include "models/generate/generate_options.hpp"
#include "models/parallel/run_context.hpp"
#include "models/servers/sent_weights.hpp"
#include "models/servers/server_process.hpp"
#include "models/servers/server_request.hpp"
#include "net/child_programs/http_client.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

struct ServerSpec {
  ServerProgram program;
  HttpUrl url;
  std::size_t connections = 64; ///< requests in flight
};

class GenerationServer {
public:
  explicit GenerationServer(ServerSpec spec);

  const std::string& name() const {
    return http_.name();
  }
  bool is_ours() const {
    return process_.is_ours();
  }
  /// Starts it if it is ours, and waits until it is ready and takes weights.
  void start(const RunContext& context);
  /// Ends it if it is ours.
  void stop();

  /// Replaces its weights while no token is drawn: pause, the three steps of an
  /// update, the version that it then says it has, resume. A mistake in a
  /// tensor is thrown; the server then goes on with the old weights.
  void update(const SentWeights& weights, const std::string& version,
              const RunContext& context);
  /// Returns the log-probabilities [L] that it gives these tokens, 0 at the
  /// first.
  std::vector<float> score(std::span<const std::int32_t> ids,
                           const RunContext& context);

  using OnAnswer = std::function<void(std::size_t i, ServerAnswer answer)>;
  /// Generates all; `on_answer` gets each as it ends. Throws after the first
  /// that failed: those before it were given.
  void generate(std::span<const ServerRequest> requests,
                const GenerateOptions& options, const RunContext& context,
                const OnAnswer& on_answer);

private:
  void wait_until_ready(const RunContext& context);
  void open_update(const RunContext& context);
  void take_weights(const SentWeights& weights, const std::string& version,
                    const RunContext& context);
  void give_up_update(const RunContext& context);
  std::string ask(const net::HttpCall& call, const RunContext& context);
  void require_answer(const net::HttpReply& reply, const std::string& route,
                      const RunContext& context);
  std::string why_dead(const RunContext& context);

  net::HttpClient http_;
  std::size_t connections_;
  ServerProcess process_;
};

} // namespace troupe::models
