// Experts that a device dispatches tokens to by itself: choice, order by expert
// and the ends of groups stay in its memory, so that the host neither reads
// them nor waits, and decode steps can be captured. For devices that have all
// experts of a layer; else the host dispatches tokens
// (models/transformer/router.hpp).
//
// T tokens, E experts, k per token, S = T k slots (a token at an expert) in
// order of expert, then of token, H hidden, I intermediate of an expert. C
// pieces of slots are computed one after the other.
#pragma once

#include "config/base/dtype.hpp"
#include "config/model/expert_shape.hpp"
#include "models/kernels/grouped_product.hpp"
#include "models/kernels/mlp.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace troupe::models {

struct ExpertChoice {
  std::int64_t tokens = 0;  ///< T
  std::int64_t experts = 0; ///< E
  std::int64_t chosen = 0;  ///< k
  RouterRule rule;
  bool keeps_scores = false;

  std::int64_t slots() const {
    return tokens * chosen;
  }
  /// Returns the numbers of the scores that are kept.
  std::int64_t scores() const {
    return keeps_scores ? tokens * experts : 0;
  }
};

/// The assignment of tokens to experts in one block of a device's memory.
struct DeviceRouting {
  ExpertChoice choice;
  std::int64_t rows_at_once = 1; ///< slots of a piece

  std::int64_t* slot_TK = nullptr;    ///< of each token's experts
  std::int32_t* experts_TK = nullptr; ///< best first
  float* weight_TK = nullptr;         ///< lies after `experts_TK`
  float* scores_TE = nullptr;         ///< lies after these, if kept
  std::int32_t* token_S = nullptr;
  float* weight_S = nullptr;
  std::int32_t* ends_CE = nullptr; ///< of each expert's rows in each piece

  /// Returns the floats that a routing takes.
  static std::int64_t floats(const ExpertChoice& choice,
                             std::int64_t rows_at_once) {
    return 6 * choice.slots() + choice.scores()
           + pieces(choice, rows_at_once) * choice.experts;
  }
  /// Returns a routing in a block of so many floats.
  static DeviceRouting in(float* block, const ExpertChoice& choice,
                          std::int64_t rows_at_once) {
    const std::int64_t slots = choice.slots();
    DeviceRouting routing{.choice = choice, .rows_at_once = rows_at_once};
    routing.slot_TK = reinterpret_cast<std::int64_t*>(block);
    routing.experts_TK = reinterpret_cast<std::int32_t*>(block + 2 * slots);
    routing.weight_TK = block + 3 * slots;
    float* next = block + 4 * slots;
    if (choice.keeps_scores)
      routing.scores_TE = next;
    next += choice.scores();
    routing.token_S = reinterpret_cast<std::int32_t*>(next);
    routing.weight_S = next + slots;
    routing.ends_CE = reinterpret_cast<std::int32_t*>(next + 2 * slots);
    return routing;
  }

  std::int64_t pieces() const { ///< C
    return pieces(choice, rows_at_once);
  }
  /// Returns the slots of a piece.
  std::int64_t rows_of(std::int64_t piece) const {
    return std::min(rows_at_once, choice.slots() - piece * rows_at_once);
  }

private:
  static std::int64_t pieces(const ExpertChoice& choice,
                             std::int64_t rows_at_once) {
    return (choice.slots() + rows_at_once - 1) / rows_at_once;
  }
};

/// All experts of a layer: their shapes and weights.
struct RoutedExperts {
  std::int64_t hidden = 0; ///< H
  MlpShape unit;           ///< one expert; its `rows` are ignored
  DType operands = DType::f32;
  DType storage = DType::f32; ///< of rows
  GroupedWeights gate_up;     ///< [2I, H] each; null: not next to each other
  GroupedWeights down;        ///< [H, I] each
};

/// Gradients of these weights; null: frozen.
struct RoutedGrads {
  GroupedGrads gate_up;
  GroupedGrads down;
};

} // namespace troupe::models
