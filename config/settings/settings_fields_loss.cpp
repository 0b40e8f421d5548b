// Settings of losses: which one, its numbers, corrections.
#include "config/settings/settings_fields.hpp"

namespace troupe {

namespace {

void add_policy_loss(FieldTable& table) {
  using A = AlgorithmSettings;
  using P = PolicyLossSettings;
  table
    .add("algorithm", "like", &Settings::algorithm, &A::like,
         "Program whose conventions replace the defaults of settings that are "
         "not written, where such programs differ without saying so: where the "
         "KL is, which deviation with which eps, bootstrapping, dual clipping. "
         "The table at the start shows what it set. none: Troupe's own.")
    .of(SettingsGroup::policy)
    .one_of({"none", "verl", "openrlhf", "trl", "nemo", "areal"});
  const auto add = [&]<class T>(const char* key, T P::*member,
                                const char* sentence) -> Field& {
    return add_part(table, key, &A::loss, member, sentence)
      .of(SettingsGroup::policy);
  };
  add("loss", &P::kind,
      "Policy loss. ppo: clipped ratio of each token; gspo: one ratio per "
      "response; cispo: the clipped ratio as a weight; sapo: a smooth "
      "gate; gmpo: geometric mean of a response's ratios; clip_cov, "
      "kl_cov: few tokens that lower the entropy most get no gradient, or "
      "pay for their distance. Each brings its paper's clip_ratio and "
      "loss_mean as defaults.")
    .one_of({"ppo", "gspo", "cispo", "sapo", "gmpo", "clip_cov", "kl_cov"});
  add("clip_ratio", &P::clip_ratio,
      "Clip range of the probability ratio: x for [1-x, 1+x], or [low, "
      "high] for [1-low, 1+high]; with loss gmpo of its logarithm. Default "
      "of gspo [0.0003, 0.0004], of cispo [1, 4], of gmpo 0.4.")
    .above(0)
    .needs("algorithm.loss", {"ppo", "gspo", "cispo", "gmpo", "clip_cov"});
  add("dual_clip", &P::dual_clip,
      "Lower bound of the loss at negative advantages, as a ratio > 1. 0: "
      "off.")
    .at_least(0)
    .needs("algorithm.loss", {"ppo", "clip_cov"});
  add("sapo_tau", &P::sapo_tau,
      "Temperatures of SAPO's gate for positive and for other "
      "advantages.")
    .above(0)
    .needs("algorithm.loss", {"sapo"});
  add("cov_share", &P::cov_share,
      "Share of a step's response tokens that clip_cov or kl_cov chooses, "
      "by the covariance of log-probability and advantage.")
    .above(0)
    .at_most(1)
    .needs("algorithm.loss", {"clip_cov", "kl_cov"});
  add("cov_range", &P::cov_range,
      "Covariances among which clip_cov draws its tokens.")
    .needs("algorithm.loss", {"clip_cov"});
  add("cov_kl_coef", &P::cov_kl_coef,
      "What a token of kl_cov pays per nat of distance from the old "
      "policy.")
    .at_least(0)
    .needs("algorithm.loss", {"kl_cov"});
}

void add_sampling_mask(FieldTable& table) {
  add_part(table, "sampling_mask", &AlgorithmSettings::loss,
           &PolicyLossSettings::sampling_mask,
           "Generation records the tokens among which top_k, top_p and min_p "
           "let each token be drawn, and log-probabilities, old, new and of "
           "the reference, are over these only: of the distribution that was "
           "sampled. Needs rollout.top_k, which bounds what is recorded; "
           "rollout.logprobs becomes sampled.")
    .of(SettingsGroup::policy);
}

void add_routing_replay(FieldTable& table) {
  add_part(table, "routing_replay", &AlgorithmSettings::loss,
           &PolicyLossSettings::routing_replay,
           "Generation records the experts that each token went to, and the "
           "actor's training and its old log-probabilities use these experts "
           "(rollout routing replay, arXiv 2510.11370): a router's near ties "
           "then cannot make training see another model than the one that "
           "generated. For actors with experts.")
    .of(SettingsGroup::policy);
}

void add_ptx(FieldTable& table) {
  add_part(
    table, "ptx_coef", &AlgorithmSettings::loss, &PolicyLossSettings::ptx_coef,
    "Weight of the language-model loss of the rows of data.ptx, a mean over "
    "their tokens, that is added to the actor's loss in each optimizer step "
    "(PPO-ptx of InstructGPT). 0: none.")
    .of(SettingsGroup::policy)
    .at_least(0)
    .needs("data.ptx");
}

void add_correction(FieldTable& table) {
  using C = CorrectionSettings;
  const auto add = [&]<class T>(const char* key, T C::*member,
                                const char* sentence) -> Field& {
    return table
      .add_nested("algorithm.correction", key, &Settings::algorithm,
                  &AlgorithmSettings::correction, member, sentence)
      .of(SettingsGroup::policy);
  };
  add("kind", &C::kind,
      "Weight of a token's policy loss, from the ratio of the trainer's to the "
      "sampler's probability. tis: the ratio, floor at least and cap at "
      "most; icepop: 0 outside [floor, cap]; sequence_tis, sequence_mask: the "
      "same by the ratio of the "
      "whole response; geometric_mask: 0 where its geometric mean is outside, "
      "else the token's; rejection: 0 or 1 by that mean. All but rejection "
      "need old_logprobs recompute.")
    .one_of({"none", "tis", "icepop", "sequence_tis", "sequence_mask",
             "geometric_mask", "rejection"});
  add("cap", &C::cap,
      "Largest ratio. Default of tis and sequence_tis 2, of icepop and "
      "geometric_mask 5, of sequence_mask 3, of rejection 1.001.")
    .above(0)
    .needs("algorithm.correction.kind");
  add("floor", &C::floor,
      "Smallest ratio. Default of icepop and geometric_mask 0.5, of rejection "
      "0.999, of the others 0.")
    .at_least(0)
    .needs("algorithm.correction.kind");
}

void add_max_lag(FieldTable& table) {
  add_part(
    table, "max_lag", &AlgorithmSettings::correction,
    &CorrectionSettings::max_lag,
    "Most steps by which the weights that generate may be older than those "
    "that are trained. plan auto and plan search try 0, 1, 2, 4, ... and say "
    "what each buys; another plan that lags more is refused. auto: searches "
    "do not lag, and other plans lag as they say.")
    .of(SettingsGroup::updates)
    .at_least(0)
    .at_most(largest_lag);
}

void add_mean(FieldTable& table) {
  using A = AlgorithmSettings;
  const auto add = [&]<class T>(const char* key, T A::*member,
                                const char* sentence) -> Field& {
    return table.add("algorithm", key, &Settings::algorithm, member, sentence)
      .of(SettingsGroup::policy);
  };
  add("loss_mean", &A::loss_mean,
      "What a loss averages over. token: all response tokens alike; "
      "sequence: the means of the sequences; horizon: the sums of the "
      "sequences, each divided by rollout.max_new_tokens, not by its length "
      "(Dr. GRPO, with whiten false). Default of loss gspo, sapo and gmpo: "
      "sequence.")
    .one_of({"token", "sequence", "horizon"});
  add("entropy_coef", &A::entropy_coef,
      "Weight of the entropy bonus in the actor's loss. 0: none.")
    .at_least(0);
  add("old_logprobs", &A::old_logprobs,
      "Old log-probabilities. rollout: those of generation; recompute: of a "
      "separate forward pass.")
    .one_of({"rollout", "recompute"});
}

void add_value_loss(FieldTable& table) {
  using V = ValueLossSettings;
  const auto add = [&]<class T>(const char* key, T V::*member,
                                const char* sentence) -> Field& {
    return add_part(table, key, &AlgorithmSettings::value, member, sentence)
      .of(SettingsGroup::critic)
      .needs("algorithm.advantage", {"gae"});
  };
  add("value_clip", &V::clip,
      "Largest change of a value that the critic's loss rewards. 0: no "
      "clipping.")
    .at_least(0);
  add("value_norm", &V::norm,
      "The critic predicts returns normalised by the mean and deviation of all "
      "returns so far; value_clip is in deviations then.");
}

void add_preference(FieldTable& table) {
  using P = PreferenceSettings;
  const auto add = [&]<class T>(const char* key, T P::*member,
                                const char* sentence) -> Field& {
    return add_part(table, key, &AlgorithmSettings::preference, member,
                    sentence)
      .of(SettingsGroup::preference);
  };
  add("pair_loss", &P::kind,
      "Loss of a pair, of h = log-ratio of the chosen response to the "
      "reference less that of the rejected one. dpo: -log sigmoid(beta h); "
      "ipo: (h - 1 / (2 beta))^2. Without a reference, of the mean "
      "log-probabilities of the responses: simpo: -log sigmoid(their beta-fold "
      "difference less pair_margin); orpo: supervised loss of the chosen one "
      "and beta times -log sigmoid of the difference of their log odds.")
    .one_of({"dpo", "ipo", "simpo", "orpo"});
  add("beta", &P::beta,
      "Weight of the implicit KL term; of a difference in SimPO and ORPO. "
      "Default of simpo: 2.")
    .of({SettingsGroup::preference, SettingsGroup::labels})
    .above(0);
  add("label_smoothing", &P::label_smoothing,
      "Share of pairs whose labels are taken to be wrong (conservative DPO).")
    .at_least(0)
    .below(0.5)
    .needs("algorithm.pair_loss", {"dpo"});
  add("pair_margin", &P::margin,
      "What SimPO's chosen response is to be ahead by.")
    .at_least(0)
    .needs("algorithm.pair_loss", {"simpo"});
  add("desirable_weight", &P::desirable_weight,
      "KTO: weight of the loss of responses with label true. With "
      "undesirable_weight it makes up for unequal numbers of the two: the "
      "paper keeps (weight x number) of true over that of false in 1 to 4/3.")
    .of(SettingsGroup::labels)
    .above(0);
  add("undesirable_weight", &P::undesirable_weight,
      "KTO: weight of the loss of responses with label false.")
    .of(SettingsGroup::labels)
    .above(0);
  add("center_coef", &P::center_coef,
      "Weight of the squared sum of a pair's two scores, which keeps the "
      "scores of a reward model near 0. 0: off; 0.01 is usual.")
    .of(SettingsGroup::reward_pairs)
    .at_least(0);
}

void add_distillation(FieldTable& table) {
  using D = DistillationSettings;
  const auto add = [&]<class T>(const char* key, T D::*member,
                                const char* sentence) -> Field& {
    return table
      .add_nested("algorithm.distillation", key, &Settings::algorithm,
                  &AlgorithmSettings::distillation, member, sentence)
      .of(SettingsGroup::distillation);
  };
  add("top_k", &D::top_k,
      "Likeliest tokens of the teacher at each position that the student is "
      "compared on; all others together count as one more. Their ids and "
      "log-probabilities are what moves from the teacher to the student.")
    .at_least(1);
  add("beta", &D::beta,
      "Divergence of student and teacher. 0: forward KL(teacher || student); "
      "1: reverse KL(student || teacher); between them the Jensen-Shannon "
      "divergence of GKD, whose mixture has the teacher with weight beta.")
    .at_least(0)
    .at_most(1);
}

} // namespace

void add_loss_fields(FieldTable& table) {
  add_policy_loss(table);
  add_sampling_mask(table);
  add_routing_replay(table);
  add_ptx(table);
  add_mean(table);
  add_correction(table);
  add_max_lag(table);
  add_value_loss(table);
  add_preference(table);
  add_distillation(table);
}

} // namespace troupe
