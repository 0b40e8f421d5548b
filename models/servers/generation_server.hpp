// A server of another program as an engine: start, ready, generate, pause,
// update, verify, resume, stop. Each is one call that returns when it is done
// or throws why not; who decides when is models/servers/served_generation.hpp,
// and the routes are those of a kind, as models/servers/vllm_server.hpp.
//
// Failures: peer_lost, the server is gone (ask `start` again); deadline, it did
// not answer in time; bad_input, it refused, in its own words.
#pragma once

#include "config/base/error.hpp"
#include "models/generate/generate_options.hpp"
#include "models/parallel/run_context.hpp"
#include "models/servers/sent_weights.hpp"
#include "models/servers/server_process.hpp"
#include "models/servers/server_request.hpp"
#include "models/servers/weight_broadcast.hpp"
#include "net/child_programs/http_client.hpp"
#include "net/transport/byte_offer.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

enum class ServerKind : std::uint8_t { vllm, sglang };

struct ServerSpec {
  ServerKind kind = ServerKind::vllm;
  ServerProgram program;
  HttpUrl url;
  std::size_t connections = 64;  ///< requests in flight
  std::filesystem::path weights; ///< folder that SGLang reads weights from
  /// How vLLM reads weights over TCP; {}: in our memory.
  std::optional<net::ByteOfferSpec> offer = {};
  /// How vLLM gets weights by NCCL; {}: it reads them.
  std::optional<WeightBroadcastSpec> broadcast = {};
};

class GenerationServer {
public:
  explicit GenerationServer(ServerSpec spec);
  virtual ~GenerationServer() = default;
  GenerationServer(const GenerationServer&) = delete;
  GenerationServer& operator=(const GenerationServer&) = delete;

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

  /// Replaces its weights while no token is drawn: pause, the update, the
  /// version that it then says it has, resume. Adapters are added to `base`, or
  /// if that is null to the one of an earlier update. A mistake is thrown; the
  /// server then goes on, if it can with the old weights.
  void update(const SentWeights& weights, const SentWeights* base,
              const std::string& version, const RunContext& context);
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
  /// Does the same with requests that come meanwhile, until no more do.
  void generate_coming(const net::Coming<ServerRequest>& requests,
                       const GenerateOptions& options,
                       const RunContext& context, const OnAnswer& on_answer);

protected:
  /// Returns the body of the answer. Throws what a failed request means, and
  /// what `watch` does, which is called now and then while none comes.
  std::string ask(const net::HttpCall& call, const RunContext& context,
                  const std::function<void()>& watch = {});
  /// Returns whether it did what it was asked, which is in vain if it has died;
  /// waits for half a minute at most.
  bool ask_in_vain(const net::HttpCall& call, const RunContext& context);
  /// Throws FailureError (stale) if the weights that it says it has are others.
  void require_version(const std::string& has, const std::string& version);

private:
  /// Does what must come before the first update.
  virtual void prepare(const RunContext& context) = 0;
  virtual net::HttpCall pause_call() const = 0;
  virtual net::HttpCall resume_call() const = 0;
  virtual void take_weights(const SentWeights& weights, const SentWeights* base,
                            const std::string& version,
                            const RunContext& context)
    = 0;
  /// Ends an update that failed, if that is still open. Returns whether the
  /// server may go on, as with its old weights.
  virtual bool give_up_update(const RunContext& context) = 0;
  virtual net::HttpCall generate_call(const ServerRequest& request,
                                      const GenerateOptions& options) const = 0;
  virtual ServerAnswer read_answer(std::string_view body) const = 0;
  virtual net::HttpCall score_call(std::span<const std::int32_t> ids) const = 0;
  virtual std::vector<float>
  read_scores(std::string_view body,
              std::span<const std::int32_t> ids) const = 0;

  void wait_until_ready(const RunContext& context);
  void require_answer(const net::HttpReply& reply, const std::string& route,
                      const RunContext& context);
  std::string why_dead(const RunContext& context);
  void require_life(const std::string& route, const RunContext& context);
  /// Returns the limits of requests whose server is watched while they are
  /// open; `route` and `context` must outlive them.
  net::HttpLimits answer_limits(const std::string& route,
                                const RunContext& context,
                                std::size_t connections);

  net::HttpClient http_;
  std::size_t connections_;
  ServerProcess process_;
};

} // namespace troupe::models
