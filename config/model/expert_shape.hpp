// The experts of a model, which take the place of its layers' MLPs (Mixtral,
// Qwen3-MoE, DeepSeek-V3, GLM-4.5): their number and widths, the layers that
// have them, and the rule by which a router chooses some of them per token.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

/// Score of an expert for a token: the softmax of the router's logits over all
/// experts, or the sigmoid of the expert's logit.
enum class RouterScore : std::uint8_t { softmax, sigmoid };

/// Choice of a token's experts by their scores, and the experts' weights in the
/// sum of their outputs.
struct RouterRule {
  RouterScore score = RouterScore::softmax;
  /// Weights of a token's experts are divided by their sum (norm_topk_prob).
  bool renormalized = true;
  /// The choice compares scores plus a correction per expert, which evens out
  /// the experts' loads and has no gradient (DeepSeek-V3, arXiv 2412.19437,
  /// equation 16).
  bool corrected = false;
  /// Experts are in this many groups of equal size. Only those of the
  /// `chosen_groups` best ones are chosen, by the sum of a group's two best
  /// scores (equation 16's node limit).
  std::int64_t groups = 1;
  std::int64_t chosen_groups = 1;
  double scale = 1; ///< of the weights (routed_scaling_factor)
  bool operator==(const RouterRule&) const = default;

  /// Returns true if the logits of experts that are not chosen do not matter: a
  /// softmax that is renormalized over the chosen ones is a softmax over these.
  bool needs_chosen_only() const {
    return score == RouterScore::softmax && renormalized && !corrected
           && groups == 1;
  }
};

struct ExpertShape {
  std::int64_t count = 0; ///< 0: every layer has one MLP for all tokens
  std::int64_t per_token = 0;
  std::int64_t width = 0; ///< intermediate size of one expert
  /// Intermediate size of an MLP for all tokens beside the experts; 0: none.
  std::int64_t shared_width = 0;
  std::vector<bool> dense_layers; ///< layers without experts; empty: none
  RouterRule router;
  bool operator==(const ExpertShape&) const = default;

  bool exist() const {
    return count > 0;
  }
  /// Returns the number of layers with experts among the first `layers`.
  std::int64_t layers_before(std::int64_t layers) const {
    std::int64_t found = 0;
    for (std::int64_t layer = 0; layer < layers; ++layer)
      found += in_layer(layer) ? 1 : 0;
    return found;
  }
  bool in_layer(std::int64_t layer) const {
    return exist()
           && (dense_layers.empty()
               || !dense_layers[static_cast<std::size_t>(layer)]);
  }
};

} // namespace troupe
