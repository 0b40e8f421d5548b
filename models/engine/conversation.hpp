// Conversations among several models of one device: each is an engine of its
// own, and all generate on the thread that calls this. One model alone needs
// Engine::converse only.
#pragma once

#include "models/engine/engine.hpp"
#include "models/generate/generate_options.hpp"

namespace troupe::models {

/// A model that speaks in conversations.
struct SpeakingEngine {
  Engine& engine;
  const GenerateOptions& options;
  RunContext& context;
};

/// Generates turns until the queue is closed, each by the speaker that it
/// names; see models::converse of generators. All dp ranks call it, also those
/// without samples.
void converse(std::span<const SpeakingEngine> speakers,
              const net::Rows& prompts, TurnQueue* turns);

} // namespace troupe::models
