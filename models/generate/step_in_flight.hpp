// A step whose drawn tokens the host has not read. Where a device draws and
// runs kernels by itself, the host launches the next step before it reads this
// one's tokens, so that the device need not wait for it: a sequence then ends
// with an id that names its token's place on the device. Noise is named by
// sample and position, so the tokens are those of a host that reads first. What
// the next step computes for sequences that have ended is dropped.
#pragma once

#include "models/generate/sequences.hpp"
#include "models/transformer/drawn_tokens.hpp"

#include <cstddef>
#include <vector>

namespace troupe::models::internal {

class StepInFlight {
public:
  /// Creates none.
  StepInFlight() = default;
  /// Takes the sequences that drew.
  StepInFlight(std::vector<Sequence*> due, DrawnTokens tokens)
    : due_(std::move(due)),
      tokens_(std::move(tokens)) {}

  /// Adds to each sequence the name of its token.
  void name_tokens();
  /// Drops the tokens of sequences that have ended since the launch, and
  /// returns how many. These sequences were fed a token too many.
  std::size_t drop_ended();

  struct Finished {
    std::vector<Sequence*> due;
    std::vector<DrawnToken> tokens;
  };
  /// Waits, and takes the names away. Returns the tokens of sequences that have
  /// not ended; there is no step in flight then.
  Finished finish();

private:
  std::vector<Sequence*> due_; ///< null: has ended
  DrawnTokens tokens_;
};

} // namespace troupe::models::internal
