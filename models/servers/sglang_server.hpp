// A SGLang server: its weights come from a folder whose file is a memory file
// (models/servers/sent_weights.hpp). It checks no sums, and a mistake may leave
// a part of the new weights: that is what the verification after it is for.
#pragma once

#include "models/servers/generation_server.hpp"

#include <filesystem>

namespace troupe::models {

class SglangServer final : public GenerationServer {
public:
  explicit SglangServer(ServerSpec spec);

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

  std::filesystem::path folder_; ///< of weights
};

} // namespace troupe::models
