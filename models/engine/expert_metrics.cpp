#include "models/engine/expert_metrics.hpp"

#include "models/parallel/run_context.hpp"
#include "models/transformer/balance_loss.hpp"
#include "models/transformer/device_dispatch.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace troupe::models {

namespace {

constexpr std::string_view balance_name = "moe/balance";
constexpr std::string_view mismatch_name = "moe/routing_mismatch";
constexpr std::string_view loss_name = "moe/aux_loss";

// Counts of a layer's experts: the loads [N, E] of each sequence's experts,
// then how many were replayed, and how many of these the router would not have
// chosen. Cp ranks add up theirs.
class LayerCounts {
public:
  static std::size_t size(const PackedSequences& sequences,
                          const ExpertShape& experts) {
    return (sequences.cu_seqlens.size() - 1)
             * static_cast<std::size_t>(experts.count)
           + 2;
  }
  LayerCounts(const PackedSequences& sequences, const ExpertShape& experts,
              std::span<double> counts)
    : sequences_(sequences),
      experts_(experts),
      loads_NE_(counts.first(counts.size() - 2)),
      replayed_(counts[counts.size() - 2]),
      mismatched_(counts.back()) {}

  // A token of a shared prompt counts once per sequence, as it does without
  // sharing.
  void count(const Routing& routing) {
    for (std::size_t s = 0; s + 1 < sequences_.cu_seqlens.size(); ++s)
      for (auto i = sequences_.cu_seqlens[s]; i < sequences_.cu_seqlens[s + 1];
           ++i)
        if (const std::int64_t token
            = sequences_.packed_L[static_cast<std::size_t>(i)];
            token >= 0)
          count_token(routing, static_cast<std::size_t>(token), load_E(s));
  }

  void add_to(MetricSums& sums) const {
    for (std::size_t s = 0; s + 1 < sequences_.cu_seqlens.size(); ++s)
      if (const double share = even_share(load_E(s)); share > 0)
        sums.add(balance_name, share, 1);
    if (replayed_ > 0)
      sums.add(mismatch_name, mismatched_, replayed_);
  }

private:
  std::span<double> load_E(std::size_t sequence) const {
    const auto count = static_cast<std::size_t>(experts_.count);
    return loads_NE_.subspan(sequence * count, count);
  }
  void count_token(const Routing& routing, std::size_t token,
                   std::span<double> load_E) {
    const auto chosen = static_cast<std::size_t>(experts_.per_token);
    for (std::size_t k = 0; k < chosen; ++k)
      ++load_E[static_cast<std::size_t>(routing.chosen_TK[token * chosen + k])];
    if (const std::int32_t own = routing.mismatched_T[token]; own >= 0) {
      mismatched_ += own;
      replayed_ += static_cast<double>(experts_.per_token);
    }
  }
  // Returns 0 for a sequence without tokens.
  double even_share(std::span<const double> load_E) const {
    double all = 0;
    double squares = 0;
    for (const double load : load_E) {
      all += load;
      squares += load * load;
    }
    return all == 0
             ? 0
             : all * all / (static_cast<double>(experts_.count) * squares);
  }

  const PackedSequences& sequences_;
  const ExpertShape& experts_;
  std::span<double> loads_NE_;
  double& replayed_;
  double& mismatched_;
};

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
                        const ExpertShape& experts, const Groups& groups,
                        MetricSums& sums) {
  if (experts.count == 0)
    return;
  std::vector<RoutedTokens*> layers;
  for (const auto& routed : saved.routed)
    layers.push_back(routed.get());
  read_choices(backend, layers);
  const std::size_t size = LayerCounts::size(sequences, experts);
  std::vector<double> counts(saved.layers.size() * size, 0.0);
  const auto counts_of = [&](std::size_t layer) {
    return LayerCounts(sequences, experts,
                       std::span(counts).subspan(layer * size, size));
  };
  for (std::size_t i = 0; i < saved.layers.size(); ++i)
    if (const Routing& routing = saved.layers[i].experts->routing;
        !routing.chosen_TK.empty())
      counts_of(i).count(routing);
  groups.join_context(counts.data(), counts.size(), DType::f64,
                      "loads of experts");
  for (std::size_t i = 0; i < saved.layers.size(); ++i) {
    counts_of(i).add_to(sums);
    const Routing& routing = saved.layers[i].experts->routing;
    if (sequences.tokens.balance_weight > 0 && !routing.chosen_TK.empty())
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
