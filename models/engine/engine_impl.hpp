// The members of an engine, for the sources that implement it.
#pragma once

#include "models/engine/engine.hpp"
#include "models/engine/optimizer.hpp"
#include "models/generate/generator.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"
#include "models/sync/replica_sync.hpp"
#include "models/transformer/shared_prompt.hpp"
#include "models/transformer/transformer.hpp"
#include "models/transformer/vocab_logprobs.hpp"

#include <memory>
#include <optional>

namespace troupe::models {

struct Engine::Impl {
  explicit Impl(Engine::Spec given);

  Engine::Spec spec;
  Backend& backend;
  LocalModel part;         ///< with the head that the role needs
  const ModelShape& shape; ///< of the part
  Parameters parameters;
  Weights weights;
  std::optional<Weights> grads; ///< trained roles only
  RopeTables rope;
  Transformer model;
  Workspaces own_workspaces; ///< used unless the device has some
  Workspaces& workspaces;
  std::unique_ptr<AdamW> adam; ///< trained roles only
  std::unique_ptr<ReplicaSync> sync;
  std::uint64_t optimizer_steps = 0; ///< all, skipped ones included
  std::uint64_t applied_steps = 0;   ///< for Adam's bias correction
  const Losses& losses;

  /// Returns the options with the model's end tokens if none are given.
  GenerateOptions resolved_options(const GenerateOptions& options) const;
  /// Returns the final hidden states of these sequences; checks lengths and
  /// grows rope.
  float* run_forward(const PackedTokens& batch, const RunContext& context,
                     Workspace& memory, Saved* saved);
  /// Returns the workspace of the i-th micro-batch in flight.
  Workspace& workspace_of(std::size_t i) {
    return workspaces.of(i, backend.memory());
  }
  VocabularyHead vocabulary_head(double temperature,
                                 const RunContext& context) const;
  /// Returns the scalar head's outputs [rows] for `hidden_TH`, readable by the
  /// host.
  const float* scalar_outputs(const float* hidden_TH, std::int64_t rows,
                              Workspace& memory) const;
  /// Copies host numbers to the device and returns their address there.
  const float* written(const std::vector<float>& values,
                       Workspace& memory) const;
  /// Throws ConfigError unless the role has a scalar head.
  void need_scalar_head(const std::string& fn) const;
};

/// Returns the masked tokens of the sequences: for each, its predecessor's
/// hidden row, its id and its index among all L.
WantedTokens wanted_tokens(const PackedSequences& packed,
                           const std::vector<float>& mask_L);

} // namespace troupe::models
