#include "config/base/http_url.hpp"
#include "config/settings/settings_fields.hpp"

namespace troupe {

namespace {

void add_rollout(FieldTable& table) {
  using R = RolloutSettings;
  auto add = [&]<class T>(const char* key, T R::*member,
                          const char* sentence) -> Field& {
    return table.add("rollout", key, &Settings::rollout, member, sentence)
      .of(SettingsGroup::rollout);
  };
  add("n", &R::n,
      "Responses to each prompt; at least 2 where algorithm.advantage is group "
      "or rloo, which compare them.")
    .at_least(1);
  add("max_new_tokens", &R::max_new_tokens,
      "Longest response, in tokens; a longer one is truncated. With the "
      "longest prompt it must fit the model's positions.")
    .at_least(1);
  add("min_new_tokens", &R::min_new_tokens,
      "The end-of-sequence token is not allowed before this many tokens.")
    .at_least(0);
  add("temperature", &R::temperature,
      "Divides the logits before sampling; also in the log-probabilities that "
      "training sees.")
    .above(0);
  add("top_k", &R::top_k, "Samples among the k likeliest tokens. 0: all.")
    .at_least(0);
  add("top_p", &R::top_p,
      "Samples among the likeliest tokens that together reach this "
      "probability. 1: all.")
    .above(0)
    .at_most(1);
  add("min_p", &R::min_p,
      "Samples among tokens with at least this share of the likeliest one's "
      "probability. 0: all.")
    .at_least(0)
    .at_most(1);
  add("repetition_penalty", &R::repetition_penalty,
      "Divides (positive) or multiplies (negative) the logits of tokens that "
      "occurred. 1: off.")
    .above(0);
  add("greedy", &R::greedy,
      "Take the likeliest token; set by `troupe generate --greedy`.")
    .of(SettingsGroup::command);
  add("ignore_eos", &R::ignore_eos,
      "Continue to max_new_tokens after an end-of-sequence token; set by "
      "`troupe generate --ignore-eos`.")
    .of(SettingsGroup::command);
  add("stop", &R::stop,
      "Texts that end a response, besides its end token; the response keeps "
      "them.");
  add("logprobs", &R::logprobs,
      "Log-probabilities kept with a response. unfiltered: of the model at the "
      "temperature, which training recomputes; sampled: of the distribution "
      "after penalty and filters.")
    .one_of({"unfiltered", "sampled"});
}

void add_rollout_limits(FieldTable& table) {
  using R = RolloutSettings;
  auto add = [&]<class T>(const char* key, T R::*member,
                          const char* sentence) -> Field& {
    return table.add("rollout", key, &Settings::rollout, member, sentence)
      .of(SettingsGroup::rollout);
  };
  add("max_batch_tokens", &R::max_batch_tokens,
      "Tokens of one pass through the model: prompts are processed in "
      "chunks together with running responses.")
    .at_least(1);
  add("max_sequences", &R::max_sequences,
      "Most responses that run at once on a device; the cache may hold "
      "fewer, and the others wait. auto: as many as the cache holds on "
      "GPUs, 64 on CPUs. Changes times only, never results.")
    .at_least(1);
  add("kv_cache_gb", &R::kv_cache_gb,
      "Most memory of a device's KV cache, in GB. auto: what the plan "
      "leaves free on the device, at most a quarter of its memory on CPUs. "
      "Changes times only, never results.")
    .above(0);
}

void add_kl(FieldTable& table) {
  using A = AlgorithmSettings;
  auto add = [&]<class T>(const char* key, T A::*member,
                          const char* sentence) -> Field& {
    return table.add("algorithm", key, &Settings::algorithm, member, sentence)
      .of(SettingsGroup::policy);
  };
  add("kl_in", &A::kl_in,
      "Where the KL divergence from the reference counts. reward: "
      "subtracted from each token's reward; loss: added to the actor's "
      "loss; none: nowhere, and no reference model is loaded. In workflow "
      "grpo the default is loss, with kl_estimator k3.")
    .one_of({"reward", "loss", "none"});
  add("kl_estimator", &A::kl_estimator,
      "Estimate of a token's KL from d = log p - log p_ref. k1: d; k2: d^2 / "
      "2; k3: exp(-d) - 1 + d.")
    .one_of({"k1", "k2", "k3"})
    .needs("algorithm.kl_in", {"reward", "loss"});
  add("kl_coef", &A::kl_coef,
      "Weight of the KL term, per nat; the first value if kl_target is set.")
    .at_least(0)
    .needs("algorithm.kl_in", {"reward", "loss"});
  add("kl_target", &A::kl_target,
      "KL of a sequence, in nats, that the adaptive controller steers kl_coef "
      "towards. 0: kl_coef stays.")
    .at_least(0)
    .needs("algorithm.kl_in", {"reward"});
  add("kl_horizon", &A::kl_horizon,
      "Samples over which the adaptive controller reacts.")
    .above(0)
    .needs("algorithm.kl_target");
}

void add_advantage(FieldTable& table) {
  using A = AlgorithmSettings;
  auto add = [&]<class T>(const char* key, T A::*member,
                          const char* sentence) -> Field& {
    return table.add("algorithm", key, &Settings::algorithm, member, sentence)
      .of(SettingsGroup::advantages);
  };
  add("advantage", &A::advantage,
      "Estimator of advantages. gae: with a critic (ppo); group, rloo, remax, "
      "reinforce_pp: without (grpo, whose default is group).")
    .one_of({"gae", "group", "rloo", "remax", "reinforce_pp"});
  add("gamma", &A::gamma, "Discount of a token's reward per token.")
    .at_least(0)
    .at_most(1)
    .needs("algorithm.advantage", {"gae", "reinforce_pp"});
  add("lam", &A::lam, "Lambda of GAE: 0 one-step, 1 whole returns.")
    .at_least(0)
    .at_most(1)
    .needs("algorithm.advantage", {"gae"});
  add("whiten", &A::whiten,
      "gae: advantages of a batch get mean 0 and variance 1 over its response "
      "tokens; group: those of a group are divided by their deviation (false: "
      "Dr. GRPO).")
    .needs("algorithm.advantage", {"gae", "group"});
}

void add_loss(FieldTable& table) {
  using A = AlgorithmSettings;
  auto add = [&]<class T>(const char* key, T A::*member,
                          const char* sentence) -> Field& {
    return table.add("algorithm", key, &Settings::algorithm, member, sentence)
      .of(SettingsGroup::policy);
  };
  add("clip_ratio", &A::clip_ratio,
      "Clip range of the probability ratio: x for [1-x, 1+x], or [low, high] "
      "for [1-low, 1+high].")
    .above(0);
  add("value_clip", &A::value_clip,
      "Largest change of a value that the critic's loss rewards. 0: no "
      "clipping.")
    .at_least(0)
    .of(SettingsGroup::critic)
    .needs("algorithm.advantage", {"gae"});
  add("loss_mean", &A::loss_mean,
      "What a loss averages over. token: all response tokens alike; "
      "sequence: the means of the sequences; horizon: the sums of the "
      "sequences, each divided by rollout.max_new_tokens, not by its length "
      "(Dr. GRPO, with whiten false).")
    .one_of({"token", "sequence", "horizon"});
  add("entropy_coef", &A::entropy_coef,
      "Weight of the entropy bonus in the actor's loss. 0: none.")
    .at_least(0);
  add("dual_clip", &A::dual_clip,
      "Lower bound of the loss at negative advantages, as a ratio > 1. 0: "
      "off.")
    .at_least(0);
  add("old_logprobs", &A::old_logprobs,
      "Old log-probabilities. rollout: those of generation; recompute: of a "
      "separate forward pass.")
    .one_of({"rollout", "recompute"});
  add("value_norm", &A::value_norm,
      "The critic predicts returns normalised by the mean and deviation of all "
      "returns so far; value_clip is in deviations then.")
    .of(SettingsGroup::critic)
    .needs("algorithm.advantage", {"gae"});
  add("beta", &A::beta, "DPO's weight of the implicit KL term.")
    .above(0)
    .of(SettingsGroup::preference);
}

void add_updates(FieldTable& table) {
  using A = AlgorithmSettings;
  auto add = [&]<class T>(const char* key, T A::*member,
                          const char* sentence) -> Field& {
    return table.add("algorithm", key, &Settings::algorithm, member, sentence)
      .of(SettingsGroup::updates);
  };
  add("mini_batches", &A::mini_batches,
      "Optimizer steps per pass over the batch, which is split into this "
      "many mini-batches.")
    .at_least(1);
  add("epochs", &A::epochs, "Passes over the batch in each step.").at_least(1);
  table // read by every workflow: all of them train
    .add("algorithm", "recompute", &Settings::algorithm, &A::recompute,
         "Activations of training: keep (false) or recompute in the "
         "backward pass to save memory (true). auto: keep them.")
    .one_of({"auto", "true", "false"});
}

void add_reward(FieldTable& table) {
  using R = RewardSettings;
  const std::vector<std::string> programs = {"python", "process", "http"};
  const std::vector<std::string> scored = {"rule", "python", "process", "http"};
  auto add = [&]<class T>(const char* key, T R::*member,
                          const char* sentence) -> Field& {
    return table.add("reward", key, &Settings::reward, member, sentence)
      .of(SettingsGroup::rewards);
  };
  add("kind", &R::kind,
      "Source of the scores. model: models.reward; rule: a built-in check "
      "of the response; python: a file with compute_score; process, http: "
      "your program or server that replies in JSON lines.")
    .one_of({"model", "rule", "python", "process", "http"});
  add("rule", &R::rule,
      "Which rule, against the row's ground_truth. gsm8k: the number after "
      "'####'; number: the final number; boxed: what the last \\boxed{} "
      "holds; exact: the whole response; regex or regex:PATTERN occurs; "
      "format or format:PATTERN is the whole response; length:N: at most N "
      "tokens. auto: by data_source and ground_truth.")
    .needs("reward.kind", {"rule"});
  add("command", &R::command, "The program and its arguments.")
    .needs("reward.kind", {"process"});
  add("file", &R::file, "The Python file.").needs("reward.kind", {"python"});
  add("function", &R::function, "The function in reward.file.")
    .needs("reward.kind", {"python"});
  add("url", &R::url, "Where to POST the rows, one a request.")
    .shaped("http://HOST[:PORT][/PATH] (https through a proxy of yours)",
            [](const std::string& text) {
              return text.empty() || parse_http_url(text).has_value();
            })
    .needs("reward.kind", {"http"});
  add("workers", &R::workers, "Processes or connections at work at once.")
    .at_least(1)
    .needs("reward.kind", programs);
  add("timeout_s", &R::timeout_s, "Longest wait for one score, in seconds.")
    .above(0)
    .needs("reward.kind", programs);
  add("on_error", &R::on_error,
      "When a score fails or is late. fail: stop; zero: score 0; skip: "
      "leave the sample out of training.")
    .one_of({"fail", "zero", "skip"})
    .needs("reward.kind", scored);
  add("scale", &R::scale, "Scores are multiplied by this, then bias is added.");
  add("bias", &R::bias, "Added to every score.");
  add("clip", &R::clip,
      "Largest absolute reward, after scale and bias. 0: no clipping.")
    .at_least(0);
  add("missing_eos", &R::missing_eos,
      "Replaces the reward of a truncated response. 0: keep it.");
  add(
    "weights", &R::weights,
    "Several rewards at once, name to weight: rules, or `score` and the names "
    "in a program's `extra`. Empty: one reward.")
    .needs("reward.kind", scored);
}

} // namespace

std::vector<Field> make_algorithm_fields() {
  FieldTable table;
  add_rollout(table);
  add_rollout_limits(table);
  add_advantage(table);
  add_kl(table);
  add_loss(table);
  add_updates(table);
  add_reward(table);
  return std::move(table.fields);
}

} // namespace troupe
