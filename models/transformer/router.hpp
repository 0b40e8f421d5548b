// The router of a layer with experts: chooses k of E experts for each token
// from the logits of a linear layer, and their weights in the sum of outputs,
// by the rule of the model (config/model/expert_shape.hpp). Runs on the host; a
// device may choose (models/kernels/expert_choice.hpp), the host assigns.
//
// T tokens, E experts, k experts per token, S = T * k slots (a token at an
// expert) in order of expert, then of token.
#pragma once

#include "config/model/expert_shape.hpp"
#include "models/kernels/expert_choice.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

/// Experts of one layer that tokens go to whatever their scores are: those that
/// generation chose (`algorithm.routing_replay`).
struct ReplayedExperts {
  const std::int32_t* first = nullptr; ///< of the first token; null: none
  std::int64_t stride = 0;             ///< from one token to the next

  /// Returns the k experts of a token; null if the router chooses.
  const std::int32_t* of(std::int64_t token) const {
    const std::int32_t* own
      = first == nullptr ? nullptr : first + token * stride;
    return own != nullptr && *own >= 0 ? own : nullptr;
  }
};

struct RouterShape {
  std::int64_t tokens = 0;  ///< T
  std::int64_t experts = 0; ///< E
  std::int64_t chosen = 0;  ///< k
  RouterRule rule;
  ReplayedExperts replayed = {};
  bool keeps_scores = false; ///< also where the weights' gradient needs none

  std::int64_t slots() const {
    return tokens * chosen;
  }
  /// Returns whether the scores of all experts are needed after the choice.
  bool needs_scores() const {
    return keeps_scores || !rule.needs_chosen_only();
  }
};

/// One expert of a run of experts, and the slots of its tokens.
struct ExpertSlots {
  std::size_t index = 0;  ///< in the run
  std::int64_t begin = 0; ///< first slot
  std::int64_t rows = 0;
  std::int64_t before = 0; ///< slots of the run before them
};

/// Neighbouring experts of a run of experts that are computed together.
struct ExpertGroup {
  std::size_t first = 0;             ///< in the run
  std::int64_t begin = 0;            ///< first slot of their tokens
  std::int64_t before = 0;           ///< slots of the run before them
  std::vector<std::int64_t> begin_G; ///< each one's first row, and the end

  std::int64_t rows() const {
    return begin_G.back();
  }
  std::size_t experts() const {
    return begin_G.size() - 1;
  }
};

/// The assignment of tokens to experts, with weights.
struct Routing {
  std::vector<std::int64_t> begin_E; ///< [E+1] first slot of each expert
  std::vector<std::int32_t> token_S;
  std::vector<float> weight_S;
  std::vector<std::int32_t> chosen_TK; ///< the same by token, best first
  /// [T] how many of a token's replayed experts the router would not have
  /// chosen; -1: none are replayed.
  std::vector<std::int32_t> mismatched_T;
  /// [T, E] scores of all experts that the gradient needs; empty where it needs
  /// the weights only (a renormalized softmax without a balance loss).
  std::vector<float> scores_TE;

  /// Returns the slot of each of `chosen_TK`.
  std::vector<std::int64_t> slots_of_tokens() const;
  /// Returns those of `count` experts from `first` on that have any tokens.
  std::vector<ExpertSlots> slots_of(std::int64_t first,
                                    std::size_t count) const;
  /// Returns all of these in groups of at most `rows_at_once` rows, or as many
  /// as the largest expert has.
  std::vector<ExpertGroup> groups_of(std::int64_t first, std::size_t count,
                                     std::int64_t rows_at_once) const;
};

/// Chooses the k experts with the largest scores for each token; ties go to the
/// lowest index. `correction_E` is null unless the rule has one.
Routing route(const RouterShape& shape, const float* logits_TE,
              const float* correction_E);

/// Assigns tokens to the experts that a device chose for them.
Routing routing_of(const RouterShape& shape, ChosenExperts chosen);

/// Adds each expert's load times E minus the load of all, whole numbers whose
/// sign says whether it had more tokens than the mean, to out_E. A token counts
/// `copies_T` times.
void add_load_excess(const RouterShape& shape, const Routing& routing,
                     std::span<const std::int64_t> copies_T, float* out_E);

/// Computes the gradient of the logits from that of the slots' weights.
void route_backward(const RouterShape& shape, const Routing& routing,
                    const float* d_weight_S, float* d_logits_TE);

} // namespace troupe::models
