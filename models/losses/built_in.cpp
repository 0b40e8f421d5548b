// The table of built-in losses; a new one is added by a line here.
#include "models/losses/distillation.hpp"
#include "models/losses/dpo.hpp"
#include "models/losses/kto.hpp"
#include "models/losses/ppo_actor.hpp"
#include "models/losses/ppo_critic.hpp"
#include "models/losses/ptx.hpp"
#include "models/losses/reward.hpp"
#include "models/losses/sft.hpp"

#include <algorithm>
#include <array>

namespace troupe::models {

namespace {

Losses& mutable_losses() {
  static Losses all = [] {
    Losses table;
    table.add(sft_loss_entry());
    table.add(reward_loss_entry());
    table.add(dpo_loss_entry());
    table.add(distillation_loss_entry());
    table.add(kto_loss_entry());
    table.add(ppo_actor_loss_entry());
    table.add(ppo_critic_loss_entry());
    table.add(ptx_loss_entry());
    return table;
  }();
  return all;
}

/// Compares what a workflow file can say.
bool is_same_loss(const LossEntry& a, const LossEntry& b) {
  const auto outputs = [](const LossEntry& entry) {
    const Exposes& all = entry.exposes;
    return std::array{all.logprobs, all.entropy, all.values, all.scores};
  };
  return outputs(a) == outputs(b) && a.metric_prefix == b.metric_prefix
         && a.columns == b.columns && a.mean_over == b.mean_over;
}

} // namespace

const Losses& losses() {
  return mutable_losses();
}

void add_loss(LossEntry entry) {
  mutable_losses().add(std::move(entry));
}

void set_file_loss(LossEntry entry) {
  Losses& table = mutable_losses();
  const auto names = table.names();
  if (std::ranges::find(names, entry.name) == names.end()
      || !is_same_loss(table.find(entry.name), entry))
    table.set(std::move(entry));
}

} // namespace troupe::models
