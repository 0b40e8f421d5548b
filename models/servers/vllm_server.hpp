// A vLLM server: its routes of reinforcement learning (VLLM_SERVER_DEV_MODE),
// with the weights taken by our plugin (models/servers/vllm_plugin.hpp) from
// our memory or over TCP, which leaves the old ones on any mistake; or by
// vLLM's own backend `nccl`, which writes over them as they come.
#pragma once

#include "models/servers/generation_server.hpp"

#include <memory>

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
  bool give_up_update(const RunContext& context) override;
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
  void send_by_nccl(const SentWeights& weights, const RunContext& context);
  void join_ranks(const RunContext& context);
  void ask_beside(const net::HttpCall& call, const RunContext& context,
                  const std::function<void()>& work);

  std::optional<net::ByteOfferSpec> offer_; ///< {}: it reads our memory
  std::optional<WeightBroadcastSpec> nccl_; ///< {}: it reads them
  std::unique_ptr<WeightBroadcast> broadcast_;
  bool weights_are_mixed_ = false; ///< an update by NCCL began and did not end
};

} // namespace troupe::models
