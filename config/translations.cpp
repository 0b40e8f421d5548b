#include "config/translations.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {

namespace {

constexpr auto translations = std::to_array<Translation>({
  // verl: dotted keys, as in its YAML
  {"verl", "actor_rollout_ref.model.path", "models.actor.path"},
  {"verl", "actor_rollout_ref.actor.optim.lr", "models.actor.optimizer.lr"},
  {"verl", "actor_rollout_ref.actor.optim.weight_decay",
   "models.actor.optimizer.weight_decay"},
  {"verl", "actor_rollout_ref.actor.optim.betas",
   "models.actor.optimizer.betas"},
  {"verl", "actor_rollout_ref.actor.optim.lr_warmup_steps",
   "models.actor.optimizer.warmup"},
  {"verl", "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio",
   "models.actor.optimizer.warmup"},
  {"verl", "actor_rollout_ref.actor.optim.warmup_style",
   "models.actor.optimizer.schedule"},
  {"verl", "actor_rollout_ref.actor.grad_clip", "models.actor.optimizer.clip"},
  {"verl", "actor_rollout_ref.actor.clip_ratio", "algorithm.clip_ratio"},
  {"verl", "actor_rollout_ref.actor.clip_ratio_low",
   "algorithm.clip_ratio: [low, high]"},
  {"verl", "actor_rollout_ref.actor.clip_ratio_high",
   "algorithm.clip_ratio: [low, high]"},
  {"verl", "actor_rollout_ref.actor.clip_ratio_c", "algorithm.dual_clip"},
  {"verl", "actor_rollout_ref.actor.entropy_coeff", "algorithm.entropy_coef"},
  {"verl", "actor_rollout_ref.actor.loss_agg_mode", "algorithm.loss_mean"},
  {"verl", "actor_rollout_ref.actor.ppo_epochs", "algorithm.epochs"},
  {"verl", "actor_rollout_ref.actor.ppo_mini_batch_size",
   "algorithm.mini_batches (a count: batch size / mini-batch size)"},
  {"verl", "actor_rollout_ref.actor.use_kl_loss", "algorithm.kl_in: loss"},
  {"verl", "actor_rollout_ref.actor.kl_loss_coef", "algorithm.kl_coef"},
  {"verl", "actor_rollout_ref.actor.kl_loss_type", "algorithm.kl_estimator"},
  {"verl", "actor_rollout_ref.rollout.n", "rollout.n"},
  {"verl", "actor_rollout_ref.rollout.temperature", "rollout.temperature"},
  {"verl", "actor_rollout_ref.rollout.top_k", "rollout.top_k"},
  {"verl", "actor_rollout_ref.rollout.top_p", "rollout.top_p"},
  {"verl", "actor_rollout_ref.rollout.response_length",
   "rollout.max_new_tokens"},
  {"verl", "actor_rollout_ref.rollout.tensor_model_parallel_size",
   "a plan with calls.actor_gen.strategy such as d2t2"},
  {"verl", "actor_rollout_ref.rollout.gpu_memory_utilization",
   "leaving it out (plan check computes memory)"},
  {"verl", "critic.model.path", "models.critic.path"},
  {"verl", "critic.optim.lr", "models.critic.optimizer.lr"},
  {"verl", "critic.grad_clip", "models.critic.optimizer.clip"},
  {"verl", "critic.cliprange_value", "algorithm.value_clip"},
  {"verl", "critic.ppo_epochs", "algorithm.epochs"},
  {"verl", "reward_model.model.path", "models.reward.path"},
  {"verl", "reward_model.reward_manager", "reward.kind"},
  {"verl", "custom_reward_function.path",
   "reward.file with reward.kind python"},
  {"verl", "custom_reward_function.name", "reward.function"},
  {"verl", "algorithm.adv_estimator", "algorithm.advantage"},
  {"verl", "algorithm.use_kl_in_reward", "algorithm.kl_in: reward"},
  {"verl", "algorithm.kl_penalty", "algorithm.kl_estimator"},
  {"verl", "algorithm.kl_ctrl.kl_coef", "algorithm.kl_coef"},
  {"verl", "algorithm.kl_ctrl.type", "algorithm.kl_target"},
  {"verl", "algorithm.kl_ctrl.target_kl", "algorithm.kl_target"},
  {"verl", "algorithm.kl_ctrl.horizon", "algorithm.kl_horizon"},
  {"verl", "data.train_files", "data.train"},
  {"verl", "data.val_files", "eval.data"},
  {"verl", "data.train_batch_size", "data.batch_size"},
  {"verl", "data.max_prompt_length", "data.max_prompt_tokens"},
  {"verl", "data.max_response_length", "rollout.max_new_tokens"},
  {"verl", "data.prompt_key", "data.fields: {prompt: COLUMN}"},
  {"verl", "data.truncation", "data.overlong"},
  {"verl", "data.filter_overlong_prompts", "data.overlong: skip"},
  {"verl", "trainer.total_training_steps", "run.steps"},
  {"verl", "trainer.total_epochs", "run.steps"},
  {"verl", "trainer.n_gpus_per_node", "cluster.devices_per_node"},
  {"verl", "trainer.nnodes", "cluster.nodes"},
  {"verl", "trainer.save_freq", "run.save_every"},
  {"verl", "trainer.test_freq", "eval.every"},
  {"verl", "trainer.experiment_name", "run.name"},
  {"verl", "trainer.default_local_dir", "run.dir"},
  {"verl", "trainer.resume_mode", "run.resume"},
  {"verl", "trainer.val_before_train", "eval.at_start"},
  {"verl", "trainer.logger", "metrics.jsonl or metrics.tensorboard"},
  {"verl", "trainer.max_actor_ckpt_to_keep", "run.keep"},
  // OpenRLHF: flags
  {"OpenRLHF", "pretrain", "models.actor.path"},
  {"OpenRLHF", "reward_pretrain", "models.reward.path"},
  {"OpenRLHF", "critic_pretrain", "models.critic.path"},
  {"OpenRLHF", "remote_rm_url", "reward.url with reward.kind http"},
  {"OpenRLHF", "actor_learning_rate", "models.actor.optimizer.lr"},
  {"OpenRLHF", "critic_learning_rate", "models.critic.optimizer.lr"},
  {"OpenRLHF", "init_kl_coef", "algorithm.kl_coef"},
  {"OpenRLHF", "use_kl_loss", "algorithm.kl_in: loss"},
  {"OpenRLHF", "advantage_estimator", "algorithm.advantage"},
  {"OpenRLHF", "eps_clip", "algorithm.clip_ratio"},
  {"OpenRLHF", "lambd", "algorithm.lam"},
  {"OpenRLHF", "max_epochs", "algorithm.epochs"},
  {"OpenRLHF", "rollout_batch_size", "data.batch_size"},
  {"OpenRLHF", "train_batch_size",
   "algorithm.mini_batches (a count: samples / train batch size)"},
  {"OpenRLHF", "micro_train_batch_size",
   "micro_batch_tokens of a training call in the plan"},
  {"OpenRLHF", "micro_rollout_batch_size",
   "micro_batch_tokens of an inference call in the plan"},
  {"OpenRLHF", "n_samples_per_prompt", "rollout.n"},
  {"OpenRLHF", "prompt_max_len", "data.max_prompt_tokens"},
  {"OpenRLHF", "generate_max_len", "rollout.max_new_tokens"},
  {"OpenRLHF", "prompt_data", "data.train"},
  {"OpenRLHF", "input_key", "data.fields: {prompt: COLUMN}"},
  {"OpenRLHF", "apply_chat_template", "data.chat: true"},
  {"OpenRLHF", "save_steps", "run.save_every"},
  {"OpenRLHF", "ckpt_path", "run.dir"},
  {"OpenRLHF", "max_ckpt_num", "run.keep"},
  {"OpenRLHF", "zero_stage", "a plan with strategies such as d4z3"},
  {"OpenRLHF", "colocate_all_models", "plan: openrlhf_colocated"},
  // TRL: arguments of its trainers (shared ones under the first that has them)
  {"TRL", "model_name_or_path", "models.actor.path"},
  {"TRL", "sft_model_path", "models.actor.path"},
  {"TRL", "reward_model_path", "models.reward.path"},
  {"TRL", "learning_rate", "models.actor.optimizer.lr"},
  {"TRL", "max_grad_norm", "models.actor.optimizer.clip"},
  {"TRL", "lr_scheduler_type", "models.actor.optimizer.schedule"},
  {"TRL", "warmup_ratio", "models.actor.optimizer.warmup"},
  {"TRL", "warmup_steps", "models.actor.optimizer.warmup"},
  {"TRL", "num_ppo_epochs", "algorithm.epochs"},
  {"TRL", "num_mini_batches", "algorithm.mini_batches"},
  {"TRL", "cliprange", "algorithm.clip_ratio"},
  {"TRL", "cliprange_value", "algorithm.value_clip"},
  {"TRL", "whiten_rewards", "algorithm.whiten"},
  {"TRL", "missing_eos_penalty", "reward.missing_eos"},
  {"TRL", "response_length", "rollout.max_new_tokens"},
  {"TRL", "max_completion_length", "rollout.max_new_tokens"},
  {"TRL", "max_prompt_length", "data.max_prompt_tokens"},
  {"TRL", "max_length", "data.max_tokens"},
  {"TRL", "max_seq_length", "data.max_tokens"},
  {"TRL", "num_generations", "rollout.n"},
  {"TRL", "per_device_train_batch_size", "data.batch_size"},
  {"TRL", "gradient_accumulation_steps",
   "micro_batch_tokens of a training call in the plan"},
  {"TRL", "num_train_epochs", "run.epochs"},
  {"TRL", "max_steps", "run.steps"},
  {"TRL", "total_episodes", "run.steps (episodes / (batch_size x n))"},
  {"TRL", "output_dir", "run.dir"},
  {"TRL", "run_name", "run.name"},
  {"TRL", "save_total_limit", "run.keep"},
  {"TRL", "eval_steps", "eval.every"},
  {"TRL", "dataset_name", "data.train (a JSONL file)"},
  {"TRL", "dataset_text_field", "data.fields: {text: COLUMN}"},
  {"TRL", "bf16", "models.actor.dtype: bf16"},
  {"TRL", "gradient_checkpointing", "algorithm.recompute"},
  {"TRL", "ref_model_mixup_alpha", "models.ref.ema_decay (1 - alpha)"},
  {"TRL", "ref_model_sync_steps", "models.ref.ema_every"},
});

std::string normalised(const std::string& key) {
  std::string text = key;
  while (text.starts_with('-'))
    text.erase(0, 1);
  std::ranges::replace(text, '-', '_');
  return text;
}

} // namespace

const Translation* find_translation(const std::string& key) {
  const auto whole = normalised(key);
  const auto last = whole.substr(whole.rfind('.') + 1);
  for (const auto& row : translations)
    if (whole == row.theirs)
      return &row;
  for (const auto& row : translations)
    if (last == row.theirs) // theirs without a dot
      return &row;
  return nullptr;
}

} // namespace troupe
