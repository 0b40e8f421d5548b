// The members of an engine, for the sources that implement it.
#pragma once

#include "models/engine/engine.hpp"
#include "models/engine/frozen_weights.hpp"
#include "models/engine/optimizer.hpp"
#include "models/engine/plane_file.hpp"
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
  Impl(Engine::Spec given, Workspaces* of_device);

  Engine::Spec spec;
  Backend& backend;
  LocalModel part; ///< what is trained, with the head that the role needs
  std::shared_ptr<FrozenWeights> frozen; ///< of a model with adapters
  const ModelShape& shape;               ///< of stack()
  Parameters parameters;                 ///< of `part`
  Weights weights;
  std::optional<Weights> grads; ///< trained roles only
  RopeTables rope;
  Transformer model;
  Workspaces own_workspaces; ///< used unless the device has some
  Workspaces& workspaces;
  std::unique_ptr<AdamW> adam; ///< trained roles only
  std::unique_ptr<ReplicaSync> sync;
  OptimizerCounts steps;
  const Losses& losses;

  /// Returns the part that computes.
  const LocalModel& stack() const {
    return frozen ? frozen->part : part;
  }
  /// Returns the views of a plane by their role in the stack.
  Weights views(Plane plane) const;
  /// Renews the views after planes came back to the device.
  void views_moved();
  /// Rounds weights that changed, where products read bf16. Every use begins
  /// with it: run_forward, generation, transformer().
  void refresh_rounded();
  /// Returns the options with the model's end tokens if none are given.
  GenerateOptions resolved_options(const GenerateOptions& options) const;
  /// Returns the final hidden states of these sequences; checks lengths and
  /// grows rope.
  TypedPtr run_forward(const PackedTokens& batch, const RunContext& context,
                       Workspace& memory, Saved* saved);
  /// Returns the workspace of the i-th micro-batch in flight.
  Workspace& workspace_of(std::size_t i) {
    return workspaces.of(i, backend.memory());
  }
  VocabularyHead vocabulary_head(double temperature,
                                 const RunContext& context) const;
  /// Returns the scalar head's outputs [rows] for `hidden_TH`, readable by the
  /// host.
  net::HostRead scalar_outputs(ConstTypedPtr hidden_TH, std::int64_t rows,
                               Workspace& memory) const;
  /// Copies host numbers to the device and returns their address there.
  const float* written(const std::vector<float>& values,
                       Workspace& memory) const;
  /// Throws ConfigError unless the role has a scalar head.
  void need_scalar_head(const std::string& fn) const;
};

/// Returns the masked tokens of the sequences whose predecessors are this
/// rank's: for each, its predecessor's hidden row, its id and its index among
/// all L.
WantedTokens wanted_tokens(const PackedSequences& packed,
                           const std::vector<float>& mask_L);

} // namespace troupe::models
