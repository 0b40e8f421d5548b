// The purpose of a session: a run that trains, a command that uses a run's
// actors for one result, or a self-test of them. A session has exactly one
// mode, and what only one mode needs is stored with it.
#pragma once

#include "actors/calls/move_check_result.hpp"
#include "models/engine/snapshot.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <variant>

namespace troupe::runtime {

enum class RunMode : std::uint8_t {
  train,      ///< `train`: steps with checkpoints
  command,    ///< `generate`, `score`: rows once through a model
  convert,    ///< `convert`: a model is loaded and saved
  move_check, ///< `doctor`: weights are moved back and forth
  evaluate,   ///< `eval`: one evaluation
};

struct TrainMode {
  static constexpr RunMode mode = RunMode::train;
};

struct CommandMode {
  static constexpr RunMode mode = RunMode::command;
};

struct ConvertMode {
  static constexpr RunMode mode = RunMode::convert;
  models::HfStore store; ///< how the loaded model is saved, without a step
};

/// Moves weights between the two replicas of a model, in place of steps.
struct MoveCheckMode {
  static constexpr RunMode mode = RunMode::move_check;
  std::chrono::duration<double> at_least{0};
  std::function<void(const actors::MoveCheckResult&)> on_moved;
};

struct EvaluateMode {
  static constexpr RunMode mode = RunMode::evaluate;
};

using ModeOptions = std::variant<TrainMode, CommandMode, ConvertMode,
                                 MoveCheckMode, EvaluateMode>;

inline RunMode mode_of(const ModeOptions& options) {
  return std::visit([](const auto& of_mode) { return of_mode.mode; }, options);
}

} // namespace troupe::runtime
