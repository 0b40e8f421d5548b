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
  add("stop", &R::stop,
      "Texts that end a response, besides its end token; the response keeps "
      "them.");
  add("logprobs", &R::logprobs,
      "Log-probabilities kept with a response. unfiltered: of the model at the "
      "temperature, which training recomputes; sampled: of the distribution "
      "after penalty and filters, the default with algorithm.sampling_mask.")
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

template <class P, class T>
Field& add_rollout_part(FieldTable& table, const char* key,
                        P RolloutSettings::*part, T P::*member,
                        const char* sentence) {
  return table.add_nested("rollout", key, &Settings::rollout, part, member,
                          sentence);
}

void add_generate_command(FieldTable& table) {
  using R = RolloutSettings;
  using G = GenerateCommandSettings;
  add_rollout_part(
    table, "greedy", &R::command, &G::greedy,
    "Take the likeliest token; set by `troupe generate --greedy`.")
    .of(SettingsGroup::command);
  add_rollout_part(table, "ignore_eos", &R::command, &G::ignore_eos,
                   "Continue to max_new_tokens after an end-of-sequence token; "
                   "set by `troupe generate --ignore-eos`.")
    .of(SettingsGroup::command);
}

void add_engine(FieldTable& table) {
  using R = RolloutSettings;
  using E = EngineSettings;
  add_rollout_part(
    table, "engine", &R::engine, &E::kind,
    "Who generates. own: the engine of Troupe; vllm, sglang: servers of that "
    "program, one per device of the call, whose weights are updated and "
    "verified at each version (docs/engines.md).")
    .of(SettingsGroup::rollout)
    .one_of({"own", "vllm", "sglang"});
  add_rollout_part(table, "servers", &R::engine, &E::servers,
                   "Addresses (http://HOST:PORT) of servers that run already, "
                   "one per device that generates, in the order of devices.")
    .of(SettingsGroup::rollout)
    .needs("rollout.engine", {"vllm", "sglang"});
  add_rollout_part(
    table, "server_command", &R::engine, &E::server_command,
    "Command that starts a server, as `PYTHON -m "
    "vllm.entrypoints.openai.api_server` or `PYTHON -m sglang.launch_server`; "
    "model, port and what updates of weights need are appended. Each device "
    "that generates has its own, which is watched and started again.")
    .of(SettingsGroup::rollout)
    .needs("rollout.engine", {"vllm", "sglang"});
  add_rollout_part(
    table, "weights_over", &R::engine, &E::weights_over,
    "How a server gets weights. memory: it reads them in the memory of the "
    "device's process, on the same host; tcp: from a port of that host, with a "
    "token of each update, encrypted off loopback unless cluster.tls is off; "
    "nccl: from a GPU of the device to GPUs of the server, by vLLM's own "
    "backend.")
    .of(SettingsGroup::rollout)
    .one_of({"memory", "tcp", "nccl"})
    .needs("rollout.engine", {"vllm"});
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
  add_part(
    table, "kl_target", &A::kl_control, &KlControlSettings::target,
    "KL of a sequence, in nats, that the adaptive controller steers kl_coef "
    "towards. 0: kl_coef stays.")
    .of(SettingsGroup::policy)
    .at_least(0)
    .needs("algorithm.kl_in", {"reward"});
  add_part(table, "kl_horizon", &A::kl_control, &KlControlSettings::horizon,
           "Samples over which the adaptive controller reacts.")
    .of(SettingsGroup::policy)
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
  add_part(table, "gamma", &A::discount, &DiscountSettings::gamma,
           "Discount of a token's reward per token.")
    .of(SettingsGroup::advantages)
    .at_least(0)
    .at_most(1)
    .needs("algorithm.advantage", {"gae", "reinforce_pp"});
  add_part(table, "lam", &A::discount, &DiscountSettings::lam,
           "Lambda of GAE: 0 one-step, 1 whole returns. With lam_alpha that of "
           "the critic's returns alone.")
    .of(SettingsGroup::advantages)
    .at_least(0)
    .at_most(1)
    .needs("algorithm.advantage", {"gae"});
  add_part(table, "lam_alpha", &A::discount, &DiscountSettings::lam_alpha,
           "Lambda of the advantages by the length of a response, 1 - 1 / "
           "(lam_alpha x tokens), as in VAPO, whose lam is 1. 0: lam for all.")
    .of(SettingsGroup::advantages)
    .at_least(0)
    .needs("algorithm.advantage", {"gae"});
  add_part(table, "bootstrap", &A::discount, &DiscountSettings::bootstrap,
           "The critic's value stands for the rewards after a truncated "
           "response; false: none follow.")
    .of(SettingsGroup::advantages)
    .needs("algorithm.advantage", {"gae"});
  add("whiten", &A::whiten,
      "gae: advantages of a batch get mean 0 and variance 1 over its response "
      "tokens; group: those of a group are divided by their deviation (false: "
      "Dr. GRPO).")
    .needs("algorithm.advantage", {"gae", "group"});
}

void add_groups(FieldTable& table) {
  using A = AlgorithmSettings;
  add_part(table, "deviation", &A::group, &GroupSettings::deviation,
           "Deviation that whitening divides by. sample: of n - 1 degrees of "
           "freedom; population: of n.")
    .of(SettingsGroup::advantages)
    .one_of({"sample", "population"})
    .needs("algorithm.advantage", {"gae", "group", "reinforce_pp"});
  add_part(table, "deviation_eps", &A::group, &GroupSettings::deviation_eps,
           "Added to the deviation of a group.")
    .of(SettingsGroup::advantages)
    .above(0)
    .needs("algorithm.advantage", {"group"});
  add_part(table, "baseline", &A::group, &GroupSettings::baseline,
           "Responses whose mean and deviation a response is compared with. "
           "all: its group's; others: the same without itself.")
    .of(SettingsGroup::advantages)
    .one_of({"all", "others"})
    .needs("algorithm.advantage", {"group"});
  add_part(table, "whiten_batch", &A::group, &GroupSettings::whiten_batch,
           "After the comparison in groups, advantages of the batch get mean 0 "
           "and variance 1 over its response tokens (with whiten false: "
           "REINFORCE++ with baseline).")
    .of(SettingsGroup::advantages)
    .needs("algorithm.advantage", {"group", "rloo"});
  table
    .add_nested("algorithm.dynamic_sampling", "rounds", &Settings::algorithm,
                &A::group, &GroupSettings::rounds,
                "Most rounds in which a step generates responses to "
                "data.batch_size prompts each, until as many groups have "
                "responses of different rewards (DAPO). Rounds that are not "
                "needed do not run; their prompts are passed over. 1: off.")
    .of(SettingsGroup::advantages)
    .at_least(1)
    .needs("algorithm.advantage", {"group", "rloo"});
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

void add_long_response(FieldTable& table) {
  using L = LongResponseSettings;
  const auto add = [&]<class T>(const char* key, T L::*member,
                                const char* sentence) -> Field& {
    return table
      .add_nested("reward", key, &Settings::reward,
                  &RewardSettings::long_response, member, sentence)
      .of(SettingsGroup::rewards);
  };
  add("missing_eos", &L::missing_eos,
      "Replaces the reward of a truncated response. 0: keep it.");
  add("overlong_tokens", &L::overlong_tokens,
      "The last tokens of rollout.max_new_tokens in which a response pays for "
      "its length: nothing at their start, overlong_penalty at their end (soft "
      "punishment of DAPO). 0: off.")
    .at_least(0);
  add("overlong_penalty", &L::overlong_penalty,
      "What the longest response loses, after scale, bias and clip.")
    .above(0)
    .needs("reward.overlong_tokens");
  add(
    "mask_truncated", &L::mask_truncated,
    "Leaves truncated responses out of the loss; their rewards still count in "
    "the mean of their group.");
}

void add_reward(FieldTable& table) {
  using R = RewardSettings;
  const std::vector<std::string> programs = {"python", "process", "http"};
  const std::vector<std::string> scored = {"rule", "python", "process", "http"};
  const std::vector<std::string> may_fail
    = {"rule", "python", "process", "http", "agents"};
  auto add = [&]<class T>(const char* key, T R::*member,
                          const char* sentence) -> Field& {
    return table.add("reward", key, &Settings::reward, member, sentence)
      .of(SettingsGroup::rewards);
  };
  add("kind", &R::kind,
      "Source of the scores. model: models.reward; rule: a built-in check "
      "of the response; python: a file with compute_score; process, http: "
      "your program or server that replies in JSON lines; agents: the number "
      "of the program that led the conversation (agents.command).")
    .one_of({"model", "rule", "python", "process", "http", "agents"});
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
    .shaped("http://HOST[:PORT][/PATH], or https://",
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
    .needs("reward.kind", may_fail);
  add("scale", &R::scale, "Scores are multiplied by this, then bias is added.");
  add("bias", &R::bias, "Added to every score.");
  add("clip", &R::clip,
      "Largest absolute reward, after scale and bias. 0: no clipping.")
    .at_least(0);
  add_long_response(table);
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
  add_engine(table);
  add_generate_command(table);
  add_advantage(table);
  add_groups(table);
  add_kl(table);
  add_loss_fields(table);
  add_updates(table);
  add_reward(table);
  return std::move(table.fields);
}

} // namespace troupe
