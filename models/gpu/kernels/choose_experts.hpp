// The choice of a token's experts by the rule of the model, as the router's on
// the host (models/transformer/router.hpp): scores, a correction, the best
// groups, the k best experts, of equal ones the one with the lowest index, and
// their weights. The host reads 2 k numbers of a token instead of E logits.
//
// T tokens, E experts, k experts per token; one block per token.
#pragma once

#include "config/model/expert_shape.hpp"
#include "models/gpu/kernels/grid.hpp"
#include "models/kernels/host_math.hpp"

#include <cmath>
#include <cstdint>

namespace troupe::models::gpu {

/// A rule as a kernel takes it.
struct ChoiceRule {
  bool is_sigmoid = false;
  bool by_logits = false; ///< a softmax over the chosen alone
  bool renormalized = true;
  std::int64_t groups = 1;
  std::int64_t chosen_groups = 1;
  float scale = 1;
};

inline ChoiceRule choice_rule(const RouterRule& rule) {
  return {rule.score == RouterScore::sigmoid,
          rule.needs_chosen_only(),
          rule.renormalized,
          rule.groups,
          rule.chosen_groups,
          static_cast<float>(rule.scale)};
}

struct ChooseExperts {
  static constexpr int threads = 128;
  static constexpr std::int64_t most_experts = 512;
  static constexpr std::int64_t most_groups = threads;
  struct Shared {
    float score[most_experts];
    float compared[most_experts];
    bool taken[most_experts];
    float part[threads];
    std::int64_t place[threads]; ///< the expert that part is of
  };

  const float* logits_TE = nullptr;
  const float* correction_E = nullptr; ///< null: none
  ChoiceRule rule;
  std::int64_t experts = 0;           ///< E
  std::int64_t chosen = 0;            ///< k
  std::int32_t* experts_TK = nullptr; ///< best first
  float* weight_TK = nullptr;
  float* score_TE = nullptr; ///< null: not wanted

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    const float* logits = logits_TE + block.index * experts;
    block.each([&](int lane) {
      for (std::int64_t e = lane; e < experts; e += threads) {
        const float x = logits[e];
        shared.score[e] = rule.is_sigmoid ? 1.0F / (1.0F + fast_exp(-x)) : x;
        shared.taken[e] = false;
      }
    });
    if (!rule.is_sigmoid && !rule.by_logits)
      softmax(block, shared);
    block.each([&](int lane) {
      for (std::int64_t e = lane; e < experts; e += threads)
        shared.compared[e]
          = shared.score[e] + (correction_E == nullptr ? 0 : correction_E[e]);
    });
    if (rule.groups > 1)
      leave_out_groups(block, shared);
    for (std::int64_t i = 0; i < chosen; ++i)
      take_best(block, shared, i);
    block.each([&](int lane) {
      if (lane == 0)
        weigh(block.index, shared);
    });
    if (score_TE == nullptr)
      return;
    if (rule.by_logits)
      softmax(block, shared);
    block.each([&](int lane) {
      for (std::int64_t e = lane; e < experts; e += threads)
        score_TE[block.index * experts + e] = shared.score[e];
    });
  }

private:
  /// Turns the scores, logits, into their softmax.
  TROUPE_KERNEL void softmax(Block<threads> block, Shared& shared) const {
    block.each([&](int lane) {
      float top = shared.score[0];
      for (std::int64_t e = lane; e < experts; e += threads)
        top = shared.score[e] > top ? shared.score[e] : top;
      shared.part[lane] = top;
    });
    reduce(block, shared.part, [](float a, float b) { return a > b ? a : b; });
    const float top = block.uniform(shared.part[0]);
    block.each([&](int lane) {
      float total = 0;
      for (std::int64_t e = lane; e < experts; e += threads) {
        shared.score[e] = fast_exp(shared.score[e] - top);
        total += shared.score[e];
      }
      shared.part[lane] = total;
    });
    sum(block, shared.part);
    block.each([&](int lane) {
      for (std::int64_t e = lane; e < experts; e += threads)
        shared.score[e] /= shared.part[0];
    });
  }

  /// Marks the experts of all groups but the best ones as taken. A group's
  /// score is the sum of its two best.
  TROUPE_KERNEL void leave_out_groups(Block<threads> block,
                                      Shared& shared) const {
    const std::int64_t size = experts / rule.groups;
    block.each([&](int lane) {
      float first = -INFINITY;
      float second = -INFINITY;
      for (std::int64_t i = 0; i < size && lane < rule.groups; ++i) {
        const float x = shared.compared[lane * size + i];
        second = x > first ? first : (x > second ? x : second);
        first = x > first ? x : first;
      }
      shared.part[lane] = first + second;
    });
    block.each([&](int lane) {
      if (lane >= rule.groups)
        return;
      std::int64_t better = 0;
      for (std::int64_t g = 0; g < rule.groups; ++g)
        better += shared.part[g] > shared.part[lane]
                      || (shared.part[g] == shared.part[lane] && g < lane)
                    ? 1
                    : 0;
      for (std::int64_t i = 0; i < size; ++i)
        shared.taken[lane * size + i] = better >= rule.chosen_groups;
    });
  }

  /// Takes the best of the experts that are left as the i-th.
  TROUPE_KERNEL void take_best(Block<threads> block, Shared& shared,
                               std::int64_t i) const {
    block.each([&](int lane) {
      std::int64_t best = -1;
      for (std::int64_t e = lane; e < experts; e += threads)
        if (!shared.taken[e]
            && (best < 0 || shared.compared[e] > shared.compared[best]))
          best = e;
      shared.place[lane] = best;
    });
    reduce(block, shared.place, [&](std::int64_t a, std::int64_t b) {
      if (a < 0 || b < 0)
        return a < 0 ? b : a;
      const float x = shared.compared[a];
      const float y = shared.compared[b];
      return y > x || (y == x && b < a) ? b : a;
    });
    block.each([&](int lane) {
      if (lane != 0)
        return;
      const std::int64_t best = shared.place[0] < 0 ? 0 : shared.place[0];
      shared.taken[best] = true;
      experts_TK[block.index * chosen + i] = static_cast<std::int32_t>(best);
      weight_TK[block.index * chosen + i] = shared.score[best];
    });
  }

  /// Makes weights of the chosen experts' scores.
  TROUPE_KERNEL void weigh(std::int64_t token, const Shared&) const {
    float* weights = weight_TK + token * chosen;
    float total = rule.by_logits ? 0 : 1e-20F; // as the router's least_sum
    const float top = weights[0];
    for (std::int64_t i = 0; i < chosen; ++i) {
      if (rule.by_logits)
        weights[i] = fast_exp(weights[i] - top);
      total += weights[i];
    }
    for (std::int64_t i = 0; i < chosen; ++i) {
      if (rule.by_logits || rule.renormalized)
        weights[i] /= total;
      weights[i] *= rule.scale;
    }
  }
};

} // namespace troupe::models::gpu
