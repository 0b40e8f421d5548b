// The loss of tests/golden/gradients.py on a golden model's sequences, run
// through the stack: what gradients are compared with.
#pragma once

#include "models/engine/engine.hpp"
#include "models/transformer/transformer.hpp"
#include "models/transformer/vocab_logprobs.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace troupe::testing {

class GoldenLoss {
public:
  struct Options {
    bool recompute = false;  ///< activations, in backward
    bool keep_logits = true; ///< for backward
  };

  /// Reads the sequences of `folder`/io.safetensors.
  explicit GoldenLoss(const std::filesystem::path& folder);

  /// Returns the mean over predicted tokens of their log-probability plus a
  /// tenth of the entropy (nats), with the engine's weights. Clears its grad
  /// plane, then adds the gradients to `grads`, views of that plane.
  double run(models::Engine& engine, const models::Weights& grads,
             Options options) const;

private:
  std::vector<std::int32_t> ids_;
  models::PackedTokens batch_;
  models::WantedTokens wanted_;
};

} // namespace troupe::testing
