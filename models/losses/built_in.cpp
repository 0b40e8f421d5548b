// The table of built-in losses; a new one is added by a line here.
#include "models/losses/distillation.hpp"
#include "models/losses/dpo.hpp"
#include "models/losses/kto.hpp"
#include "models/losses/ppo_actor.hpp"
#include "models/losses/ppo_critic.hpp"
#include "models/losses/ptx.hpp"
#include "models/losses/reward.hpp"
#include "models/losses/sft.hpp"

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

} // namespace

const Losses& losses() {
  return mutable_losses();
}

void add_loss(LossEntry entry) {
  mutable_losses().add(std::move(entry));
}

} // namespace troupe::models
