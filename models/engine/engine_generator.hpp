// The generator of an engine and the weights that it reads. It has captured
// graphs, packed weights and the KV cache in the device's memory, which other
// calls need: it lives for one call, unless nothing else uses that memory
// between two calls that generate (Engine::Spec::keeps_generator). Then graphs
// are replayed from call to call, with new weights in place of the old ones.
// Graphs keep addresses, so they are worth nothing once memory is freed.
#pragma once

#include "models/engine/engine.hpp"
#include "models/generate/generate_options.hpp"
#include "models/generate/generator.hpp"
#include "models/sync/gathered_weights.hpp"

#include <cstdint>
#include <memory>

namespace troupe::models {

class EngineGenerator {
public:
  /// Keeps references to the engine's weights. Its calls have the limits of
  /// `options`.
  EngineGenerator(Engine::Impl& engine, const GenerateOptions& options);
  EngineGenerator(const EngineGenerator&) = delete;
  EngineGenerator& operator=(const EngineGenerator&) = delete;

  /// Returns whether the options have these limits: plans count the memory of
  /// one call, not the larger parts of two that have limits of their own.
  bool fits(const GenerateOptions& options) const {
    return limits_of(options) == limits_;
  }
  /// Makes the next run read the engine's current weights, which with z3 are
  /// gathered. Collective over dp.
  void take_weights(const Groups& groups);
  Generator& generator() {
    return generator_;
  }

private:
  struct Limits {
    std::uint64_t cache_bytes = 0;
    std::int64_t sequences = 0;
    std::int64_t batch_tokens = 0;

    bool operator==(const Limits&) const = default;
  };
  static Limits limits_of(const GenerateOptions& options) {
    return {options.kv_cache_bytes, options.max_sequences,
            options.max_batch_tokens};
  }

  std::unique_ptr<GatheredWeights> gathered_; ///< with z3 only
  Limits limits_;
  Generator generator_;
};

} // namespace troupe::models
