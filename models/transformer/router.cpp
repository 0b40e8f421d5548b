#include "models/transformer/router.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace troupe::models {

namespace {

// Keeps a sum of scores that are all 0 from dividing by 0.
constexpr float least_sum = 1e-20F;

void softmax(std::span<float> logits) {
  const float top = *std::ranges::max_element(logits);
  float sum = 0;
  for (float& x : logits) {
    x = std::exp(x - top);
    sum += x;
  }
  for (float& x : logits)
    x /= sum;
}

void sigmoid(std::span<float> logits) {
  for (float& x : logits)
    x = 1.0F / (1.0F + std::exp(-x));
}

// One token's choice.
class Chooser {
public:
  Chooser(const RouterShape& shape, const float* correction_E)
    : shape_(shape),
      correction_E_(correction_E),
      scores_E_(static_cast<std::size_t>(shape.experts)),
      compared_E_(scores_E_.size()),
      order_E_(scores_E_.size()),
      weights_K_(static_cast<std::size_t>(shape.chosen)) {}

  void choose(std::int64_t token, const float* logits_E) {
    std::copy_n(logits_E, shape_.experts, scores_E_.begin());
    if (shape_.rule.score == RouterScore::sigmoid)
      sigmoid(scores_E_);
    else if (!shape_.rule.needs_chosen_only())
      softmax(scores_E_);
    compared_E_ = scores_E_;
    if (correction_E_ != nullptr)
      for (std::size_t e = 0; e < compared_E_.size(); ++e)
        compared_E_[e] += correction_E_[e];
    if (shape_.rule.groups > 1)
      leave_out_groups();
    best(compared_E_, order_E_, shape_.chosen);
    mismatched_ = -1;
    if (const std::int32_t* given = shape_.replayed.of(token))
      take(given);
    weigh();
  }
  /// Returns how many given experts are not the router's choice; -1: none are
  /// given.
  std::int32_t mismatched() const {
    return mismatched_;
  }
  std::span<const float> scores_E() const {
    return scores_E_;
  }
  std::int64_t expert(std::size_t i) const {
    return order_E_[i];
  }
  float weight(std::size_t i) const {
    return weights_K_[i];
  }

private:
  // Sorts the indices of the `count` largest values to the front.
  static void best(std::span<const float> values,
                   std::vector<std::int64_t>& order, std::int64_t count) {
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](std::int64_t a, std::int64_t b) {
                        const float x = values[static_cast<std::size_t>(a)];
                        const float y = values[static_cast<std::size_t>(b)];
                        return x > y || (x == y && a < b);
                      });
  }

  // Replaces the chosen experts by given ones.
  void take(const std::int32_t* given) {
    const auto chosen_end = order_E_.begin() + shape_.chosen;
    mismatched_ = 0;
    for (std::int64_t i = 0; i < shape_.chosen; ++i)
      if (std::find(order_E_.begin(), chosen_end, given[i]) == chosen_end)
        ++mismatched_;
    std::copy_n(given, shape_.chosen, order_E_.begin());
  }

  // A group's score is the sum of its two best.
  void leave_out_groups() {
    const auto groups = static_cast<std::size_t>(shape_.rule.groups);
    const std::size_t size = compared_E_.size() / groups;
    group_scores_.resize(groups);
    group_order_.resize(groups);
    for (std::size_t g = 0; g < groups; ++g) {
      float first = -std::numeric_limits<float>::infinity();
      float second = first;
      for (std::size_t i = g * size; i < (g + 1) * size; ++i) {
        second = std::max(second, std::min(first, compared_E_[i]));
        first = std::max(first, compared_E_[i]);
      }
      group_scores_[g] = first + second;
    }
    best(group_scores_, group_order_, shape_.rule.chosen_groups);
    for (std::size_t i = static_cast<std::size_t>(shape_.rule.chosen_groups);
         i < groups; ++i)
      std::fill_n(compared_E_.begin()
                    + group_order_[i] * static_cast<std::int64_t>(size),
                  size, -std::numeric_limits<float>::infinity());
  }

  void weigh() {
    for (std::size_t i = 0; i < weights_K_.size(); ++i)
      weights_K_[i] = scores_E_[static_cast<std::size_t>(order_E_[i])];
    if (shape_.rule.needs_chosen_only()) {
      softmax(weights_K_);
    } else if (shape_.rule.renormalized) {
      const float sum
        = std::accumulate(weights_K_.begin(), weights_K_.end(), least_sum);
      for (float& weight : weights_K_)
        weight /= sum;
    }
    if (shape_.rule.scale != 1)
      for (float& weight : weights_K_)
        weight *= static_cast<float>(shape_.rule.scale);
  }

  const RouterShape& shape_;
  const float* correction_E_;
  std::vector<float> scores_E_;
  std::vector<float> compared_E_;
  std::vector<std::int64_t> order_E_;
  std::vector<float> weights_K_;
  std::vector<float> group_scores_;
  std::vector<std::int64_t> group_order_;
  std::int32_t mismatched_ = -1;
};

// Appends a token's scores, given those that its experts were chosen by.
void add_scores(const RouterShape& shape, std::span<const float> chosen_by_E,
                std::vector<float>& scores_TE) {
  scores_TE.insert(scores_TE.end(), chosen_by_E.begin(), chosen_by_E.end());
  if (shape.rule.needs_chosen_only()) // by logits
    softmax(std::span(scores_TE).last(chosen_by_E.size()));
}

// Calls visit(slot, token, expert) for all slots.
template <class Visit>
void each_slot(const Routing& routing, const Visit& visit) {
  for (std::size_t e = 0; e + 1 < routing.begin_E.size(); ++e)
    for (std::int64_t s = routing.begin_E[e]; s < routing.begin_E[e + 1]; ++s)
      visit(
        static_cast<std::size_t>(s),
        static_cast<std::size_t>(routing.token_S[static_cast<std::size_t>(s)]),
        e);
}

// Sorts slots by expert, from the chosen experts and their weights.
void sort_slots(const RouterShape& shape, const std::vector<float>& weight_TK,
                Routing& routing) {
  const std::vector<std::int32_t>& chosen_TK = routing.chosen_TK;
  routing.begin_E.assign(static_cast<std::size_t>(shape.experts) + 1, 0);
  for (const std::int32_t expert : chosen_TK)
    ++routing.begin_E[static_cast<std::size_t>(expert) + 1];
  std::partial_sum(routing.begin_E.begin(), routing.begin_E.end(),
                   routing.begin_E.begin());
  const std::vector<std::int64_t> slot_TK = routing.slots_of_tokens();
  routing.token_S.resize(chosen_TK.size());
  routing.weight_S.resize(chosen_TK.size());
  for (std::size_t i = 0; i < chosen_TK.size(); ++i) {
    const auto slot = static_cast<std::size_t>(slot_TK[i]);
    routing.token_S[slot]
      = static_cast<std::int32_t>(i / static_cast<std::size_t>(shape.chosen));
    routing.weight_S[slot] = weight_TK[i];
  }
}

} // namespace

std::vector<std::int64_t> Routing::slots_of_tokens() const {
  std::vector<std::int64_t> next_E = begin_E;
  std::vector<std::int64_t> slot_TK;
  slot_TK.reserve(chosen_TK.size());
  for (const std::int32_t expert : chosen_TK)
    slot_TK.push_back(next_E[static_cast<std::size_t>(expert)]++);
  return slot_TK;
}

std::vector<ExpertSlots> Routing::slots_of(std::int64_t first,
                                           std::size_t count) const {
  std::vector<ExpertSlots> found;
  const auto* begins = begin_E.data() + first;
  for (std::size_t i = 0; i < count; ++i)
    if (const std::int64_t rows = begins[i + 1] - begins[i]; rows > 0)
      found.push_back({i, begins[i], rows, begins[i] - begins[0]});
  return found;
}

std::vector<ExpertGroup> Routing::groups_of(std::int64_t first,
                                            std::size_t count,
                                            std::int64_t rows_at_once) const {
  const std::vector<ExpertSlots> all = slots_of(first, count);
  std::int64_t limit = rows_at_once;
  for (const ExpertSlots& slots : all)
    limit = std::max(limit, slots.rows);
  std::vector<ExpertGroup> groups;
  for (const ExpertSlots& slots : all) {
    if (groups.empty() || groups.back().rows() + slots.rows > limit)
      groups.push_back({slots.index, slots.begin, slots.before, {0}});
    ExpertGroup& group = groups.back();
    // Experts without tokens that are between others have no rows.
    group.begin_G.resize(slots.index - group.first + 1, group.rows());
    group.begin_G.push_back(group.rows() + slots.rows);
  }
  return groups;
}

Routing routing_of(const RouterShape& shape, ChosenExperts chosen) {
  Routing routing;
  routing.chosen_TK = std::move(chosen.experts_TK);
  routing.scores_TE = std::move(chosen.scores_TE);
  routing.mismatched_T.assign(static_cast<std::size_t>(shape.tokens), -1);
  sort_slots(shape, chosen.weight_TK, routing);
  return routing;
}

Routing route(const RouterShape& shape, const float* logits_TE,
              const float* correction_E) {
  ChosenExperts chosen;
  std::vector<std::int32_t> mismatched_T;
  Chooser chooser(shape, correction_E);
  for (std::int64_t t = 0; t < shape.tokens; ++t) {
    chooser.choose(t, logits_TE + t * shape.experts);
    mismatched_T.push_back(chooser.mismatched());
    if (shape.needs_scores())
      add_scores(shape, chooser.scores_E(), chosen.scores_TE);
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape.chosen); ++i) {
      chosen.experts_TK.push_back(static_cast<std::int32_t>(chooser.expert(i)));
      chosen.weight_TK.push_back(chooser.weight(i));
    }
  }
  Routing routing = routing_of(shape, std::move(chosen));
  routing.mismatched_T = std::move(mismatched_T);
  return routing;
}

void add_load_excess(const RouterShape& shape, const Routing& routing,
                     std::span<const std::int64_t> copies_T, float* out_E) {
  std::vector<std::int64_t> load_E(static_cast<std::size_t>(shape.experts), 0);
  std::int64_t all = 0;
  for (std::size_t i = 0; i < routing.chosen_TK.size(); ++i) {
    const std::int64_t copies
      = copies_T[i / static_cast<std::size_t>(shape.chosen)];
    load_E[static_cast<std::size_t>(routing.chosen_TK[i])] += copies;
    all += copies;
  }
  for (std::size_t e = 0; e < load_E.size(); ++e)
    out_E[e] += static_cast<float>(load_E[e] * shape.experts - all);
}

// With scores s, chosen experts C, scale c and N = sum over C of s where
// weights are renormalized (else 1), w_e = c s_e / N, so
//   d s_e = c / N (d w_e - [renormalized] sum over C of (w / c) d w)
// for e in C, and 0 for others. Then
//   softmax: d logit_e = s_e (d s_e - sum over all of s d s)
//   sigmoid: d logit_e = s_e (1 - s_e) d s_e.
// A renormalized softmax needs no scores: d logit_e = w_e (d w_e - mean).
void route_backward(const RouterShape& shape, const Routing& routing,
                    const float* d_weight_S, float* d_logits_TE) {
  const auto tokens = static_cast<std::size_t>(shape.tokens);
  const auto experts = static_cast<std::size_t>(shape.experts);
  const auto scale = static_cast<float>(shape.rule.scale);
  std::fill_n(d_logits_TE, tokens * experts, 0.0F);
  std::vector<float> mean_T(tokens, 0.0F); // of d w, weighted by w / c
  if (shape.rule.renormalized)
    each_slot(routing, [&](std::size_t s, std::size_t t, std::size_t) {
      mean_T[t] += routing.weight_S[s] / scale * d_weight_S[s];
    });
  if (shape.rule.needs_chosen_only())
    return each_slot(routing, [&](std::size_t s, std::size_t t, std::size_t e) {
      d_logits_TE[t * experts + e]
        = routing.weight_S[s] * (d_weight_S[s] - mean_T[t]);
    });
  std::vector<float> sum_T(tokens, least_sum); // N
  std::vector<float> dot_T(tokens, 0.0F);      // sum over all of s d s
  if (shape.rule.renormalized)
    each_slot(routing, [&](std::size_t, std::size_t t, std::size_t e) {
      sum_T[t] += routing.scores_TE[t * experts + e];
    });
  else
    std::ranges::fill(sum_T, 1.0F);
  each_slot(routing, [&](std::size_t s, std::size_t t, std::size_t e) {
    const std::size_t at = t * experts + e;
    d_logits_TE[at] = scale / sum_T[t] * (d_weight_S[s] - mean_T[t]);
    dot_T[t] += routing.scores_TE[at] * d_logits_TE[at];
  });
  const bool is_sigmoid = shape.rule.score == RouterScore::sigmoid;
  for (std::size_t at = 0; at < tokens * experts; ++at) {
    const float score = routing.scores_TE[at];
    d_logits_TE[at] = is_sigmoid
                        ? score * (1 - score) * d_logits_TE[at]
                        : score * (d_logits_TE[at] - dot_T[at / experts]);
  }
}

} // namespace troupe::models
