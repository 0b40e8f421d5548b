// What an engine holds, for the sources that implement it.
#pragma once

#include "models/engine.hpp"
#include "models/generator.hpp"
#include "models/model_part.hpp"
#include "models/optimizer.hpp"
#include "models/parallel_loss.hpp"
#include "models/parameters.hpp"
#include "models/replica_sync.hpp"
#include "models/shared_prompt.hpp"
#include "models/transformer.hpp"

#include <memory>
#include <optional>

namespace troupe::models {

struct Engine::Impl {
  explicit Impl(Engine::Spec given);

  Engine::Spec spec;
  Compute& compute;
  ModelPart part;          ///< with the head that the role asks for
  const ModelShape& shape; ///< of the part
  Parameters parameters;
  Weights weights;
  std::optional<Weights> grads; ///< trained roles
  RopeTable rope;
  Transformer model;
  Workspaces own_workspaces; ///< unless the device has them
  Workspaces& workspaces;
  std::unique_ptr<AdamW> adam; ///< trained roles
  std::unique_ptr<ReplicaSync> sync;
  std::uint64_t optimizer_steps = 0; ///< all, skipped ones included
  std::uint64_t applied_steps = 0;   ///< Adam's bias correction
  const Losses& losses;

  /// With the model's end tokens where none are given.
  GenerateOptions resolved_options(const GenerateOptions& options) const;
  /// Final hidden states of these sequences; checks lengths and grows rope.
  float* run_forward(const PackedTokens& batch, const RunContext& context,
                     Workspace& memory, Saved* saved);
  /// Of the i-th micro-batch in flight.
  Workspace& workspace_of(std::size_t i) {
    return workspaces.of(i, compute.memory());
  }
  VocabularyHead vocabulary_head(double temperature,
                                 const RunContext& context) const;
  /// The scalar head's [rows] of `hidden_TH`, ready for the host.
  const float* scalar_outputs(const float* hidden_TH, std::int64_t rows,
                              Workspace& memory) const;
  /// The host's numbers where the device finds them.
  const float* written(const std::vector<float>& values,
                       Workspace& memory) const;
  /// Throws ConfigError unless the role has a scalar head.
  void need_scalar_head(const std::string& fn) const;
};

/// Every masked token of the sequences: its predecessor's hidden row, its id
/// and where it stands among all L.
WantedTokens wanted_tokens(const PackedSequences& packed,
                           const std::vector<float>& mask_L);

} // namespace troupe::models
