#include "models/engine/expert_metrics.hpp"

#include "models/transformer/balance_loss.hpp"
#include "models/transformer/device_dispatch.hpp"

#include <string_view>
#include <vector>

namespace troupe::models {

namespace {

constexpr std::string_view balance_name = "moe/balance";
constexpr std::string_view mismatch_name = "moe/routing_mismatch";
constexpr std::string_view loss_name = "moe/aux_loss";

// Returns the even share of experts that entries [begin, end) of L use.
double even_share(const Routing& routing, const PackedSequences& sequences,
                  const ExpertShape& experts, std::int64_t begin,
                  std::int64_t end) {
  std::vector<double> load_E(static_cast<std::size_t>(experts.count), 0.0);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t token = sequences.packed_L[static_cast<std::size_t>(i)];
    for (std::int64_t k = 0; k < experts.per_token; ++k)
      ++load_E[static_cast<std::size_t>(
        routing
          .chosen_TK[static_cast<std::size_t>(token * experts.per_token + k)])];
  }
  double squares = 0;
  for (const double load : load_E)
    squares += load * load;
  const auto all = static_cast<double>((end - begin) * experts.per_token);
  return all * all / (static_cast<double>(experts.count) * squares);
}

// A token of a shared prompt counts once per sequence, as it does without
// sharing.
void add_mismatch(const Routing& routing, const PackedSequences& sequences,
                  const ExpertShape& experts, MetricSums& sums) {
  std::int64_t mismatched = 0;
  std::int64_t replayed = 0;
  for (const std::int64_t token : sequences.packed_L)
    if (const std::int32_t own
        = routing.mismatched_T[static_cast<std::size_t>(token)];
        own >= 0) {
      mismatched += own;
      replayed += experts.per_token;
    }
  if (replayed > 0)
    sums.add(mismatch_name, static_cast<double>(mismatched),
             static_cast<double>(replayed));
}

void add_balance_losses(const Routing& routing,
                        const PackedSequences& sequences,
                        const ExpertShape& experts, MetricSums& sums) {
  const RouterShape shape{.tokens = sequences.tokens.num_tokens(),
                          .experts = experts.count,
                          .chosen = experts.per_token,
                          .rule = experts.router};
  for (const double loss : balance_losses(shape, routing, sequences.tokens))
    sums.add(loss_name, loss, 1);
}

} // namespace

void add_expert_metrics(Backend& backend, const Saved& saved,
                        const PackedSequences& sequences,
                        const ExpertShape& experts, MetricSums& sums) {
  std::vector<RoutedTokens*> layers;
  for (const auto& routed : saved.routed)
    layers.push_back(routed.get());
  read_choices(backend, layers);
  for (const LayerSaved& layer : saved.layers) {
    if (layer.experts == nullptr || layer.experts->routing.chosen_TK.empty())
      continue;
    const Routing& routing = layer.experts->routing;
    for (std::size_t s = 0; s + 1 < sequences.cu_seqlens.size(); ++s)
      if (const std::int64_t begin = sequences.cu_seqlens[s],
          end = sequences.cu_seqlens[s + 1];
          begin < end)
        sums.add(balance_name,
                 even_share(routing, sequences, experts, begin, end), 1);
    add_mismatch(routing, sequences, experts, sums);
    if (sequences.tokens.balance_weight > 0)
      add_balance_losses(routing, sequences, experts, sums);
  }
}

MetricSums expert_sums(const MetricSums& sums) {
  MetricSums own;
  for (const Sum& sum : sums.all())
    if (sum.name == balance_name || sum.name == mismatch_name
        || sum.name == loss_name)
      own.add(sum);
  return own;
}

} // namespace troupe::models
