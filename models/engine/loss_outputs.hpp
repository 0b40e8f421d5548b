// Passes outputs of the model to a loss, as leaves of libtorch's autograd, and
// the leaves' gradients back through the head to d hidden. The stack itself has
// kernels and gradients of its own; autograd sees losses only.
//
// T packed tokens of the micro-batch, L entries of its sequences, K picked
// tokens per entry, H hidden.
#pragma once

#include "models/engine/engine_impl.hpp"
#include "models/engine/kept_reader.hpp"
#include "models/losses/loss.hpp"
#include "models/transformer/shared_prompt.hpp"
#include "models/transformer/vocab_logprobs.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

/// One micro-batch between forward and backward.
struct TrainMicroBatch {
  PackedSequences sequences;
  std::vector<std::size_t> rows; ///< of the samples, in order
  std::vector<float> mask_L;
  std::vector<std::int32_t> picked_LK; ///< ids, if the loss reads any
  WantedTokens wanted;
  TokenStatistics found;
  Saved saved;
  TypedPtr hidden_TH;
  TrainBatch batch;
  at::Tensor loss;
  Workspace* workspace = nullptr;
};

class LossOutputs {
public:
  LossOutputs(Engine::Impl& impl, const LossEntry& loss, double temperature,
              const RunContext& context)
    : impl_(impl),
      loss_(loss),
      temperature_(temperature),
      context_(context) {}

  /// Fills the leaf tensors that the loss reads with the model's outputs, over
  /// the tokens that `kept` names; null: over the vocabulary. Cp ranks each get
  /// those of all their tokens.
  /// Throws ConfigError for picked ids that the model does not have.
  void expose(TrainMicroBatch& m, const KeptReader* kept) const;
  /// Returns d hidden [T, H] in the workspace, from the leaves' gradients; adds
  /// to the gradient of the head.
  TypedPtr gradient(TrainMicroBatch& m) const;

private:
  void expose_tokens(TrainMicroBatch& m, const KeptReader* kept) const;
  void check_picked(TrainMicroBatch& m) const;
  /// Adds up the parts of an output that cp ranks have.
  void join(const at::Tensor& output) const;
  void expose_scalars(TrainMicroBatch& m) const;
  void gradient_of_tokens(TrainMicroBatch& m, TypedPtr d_hidden_TH) const;
  void gradient_of_scalars(TrainMicroBatch& m, TypedPtr d_hidden_TH) const;

  Engine::Impl& impl_;
  const LossEntry& loss_;
  double temperature_;
  const RunContext& context_;
};

} // namespace troupe::models
