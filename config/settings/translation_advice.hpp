// Advice on settings of other systems that have no equivalent here: sentences
// that the tables of config/settings/foreign_keys.hpp share.
#pragma once

namespace troupe::advice {

inline constexpr const char* in_plan
  = "leaving it out (the plan says it, `troupe plan search` finds one)";
inline constexpr const char* micro_batch
  = "leaving it out (micro_batch_tokens of the call in the plan)";
inline constexpr const char* own_engine
  = "leaving it out (generation is built in, without vLLM or SGLang)";
inline constexpr const char* own_tokenizer
  = "leaving it out (the model folder's tokenizer and template are used)";
inline constexpr const char* lora_rank
  = "models.actor.lora.rank (0: all weights are trained)";
inline constexpr const char* lora_alpha = "models.actor.lora.alpha";
inline constexpr const char* lora_targets
  = "models.actor.lora.targets: [all-linear], or names such as q_proj";
inline constexpr const char* no_quantization
  = "leaving it out (weights are not quantized)";
inline constexpr const char* both_clips = "algorithm.clip_ratio: [low, high]";
inline constexpr const char* user_workflow
  = "a user-defined workflow, as docs/custom_workflows.md shows";
inline constexpr const char* to_wandb = "metrics.wandb: PROJECT";
inline constexpr const char* to_mlflow = "metrics.mlflow: EXPERIMENT";
inline constexpr const char* own_command
  = "metrics.command: a program that reads a JSON line a step";
inline constexpr const char* every_step
  = "leaving it out (every step is a line)";
inline constexpr const char* hub
  = "`hf upload` of runs/NAME/latest after the run";
inline constexpr const char* cache_size
  = "rollout.kv_cache_gb: auto (a size in GB, not a share)";
inline constexpr const char* no_average
  = "leaving it out (no averaged copy of the actor is kept)";
inline constexpr const char* packed
  = "leaving it out (sequences are always packed)";

} // namespace troupe::advice
