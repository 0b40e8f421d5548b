// A vLLM server: its routes of reinforcement learning (VLLM_SERVER_DEV_MODE),
// with the weights taken by our plugin (models/servers/vllm_plugin.hpp) from
// our memory or over TCP. It leaves the old ones on any mistake.
#pragma once

#include "models/servers/generation_server.hpp"

namespace troupe::models {

class VllmServer final : public GenerationServer {
public:
  explicit VllmServer(ServerSpec spec);

private:
  void prepare(const RunContext& context) override;
  net::HttpCall pause_call() const override;
  net::HttpCall resume_call() const override;
  void take_weights(const SentWeights& weights, const SentWeights* base,
                    const std::string& version,
                    const RunContext& context) override;
  void give_up_update(const RunContext& context) override;
  net::HttpCall generate_call(const ServerRequest& request,
                              const GenerateOptions& options) const override;
  ServerAnswer read_answer(std::string_view body) const override;
  net::HttpCall score_call(std::span<const std::int32_t> ids) const override;
  std::vector<float>
  read_scores(std::string_view body,
              std::span<const std::int32_t> ids) const override;

  void open_update(const RunContext& context);
  void send_tensors(const SentWeights& weights, const RunContext& context);
  void send_over_tcp(const SentWeights& weights, const RunContext& context);

  std::optional<net::ByteOfferSpec> offer_; ///< {}: it reads our memory
};

} // namespace troupe::models
