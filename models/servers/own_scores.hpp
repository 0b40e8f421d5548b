// Log-probabilities that our own engine gives to fixed tokens, with which a
// server of the same weights is checked. All devices of a replica compute them
// together, once per version, so that the one that has the server can check it
// again after a restart without the others.
#pragma once

#include "models/parallel/run_context.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

class Engine;

class OwnScores {
public:
  /// Computes them if they are of another version. All devices of a replica
  /// call it with the same versions.
  void compute(Engine& engine, const std::string& version, RunContext& context);
  /// Returns the tokens, spread over the vocabulary.
  std::span<const std::int32_t> ids() const {
    return ids_;
  }
  /// Returns the largest difference of `theirs` [L]; infinity for NaN.
  double gap_to(std::span<const float> theirs) const;

private:
  std::optional<std::string> version_; ///< of `logprobs_`
  std::vector<std::int32_t> ids_;
  std::vector<float> logprobs_; ///< [L], 0 at the first
};

} // namespace troupe::models
