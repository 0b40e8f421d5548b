// Terms that a prediction leaves out or counts as another system does: for
// studies and for tables that quote published times (cost_model.hpp).
#pragma once

namespace troupe::plans {

/// Systems whose published times are quoted next to predictions.
enum class Engine {
  own,
  deepspeed_chat, ///< slower passes, decoding bound by launches
  openrlhf,       ///< slower passes, rollouts in rounds one after the other
};

/// Terms that a study may turn off; all are on by default.
struct CostEffects {
  bool bubbles = true;
  bool moves = true;
  /// Engine that runs the plan (`engines` of the hardware).
  Engine engine = Engine::own;
};

} // namespace troupe::plans
