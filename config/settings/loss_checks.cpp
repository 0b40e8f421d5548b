#include "config/settings/loss_checks.hpp"

#include "config/settings/setting_checks.hpp"
#include "config/settings/settings_schema.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

class LossChecks : SettingChecks {
public:
  LossChecks(const Settings& settings, const Place& whole)
    : SettingChecks(settings, whole) {}

  void check_correction() const {
    const auto& correction = settings_.algorithm.correction;
    if (correction.kind == "none")
      return;
    if (correction.kind != "rejection"
        && settings_.algorithm.old_logprobs == "rollout")
      fail("algorithm.correction.kind",
           "rejection or none with algorithm.old_logprobs rollout, where the "
           "loss already compares with the sampler's log-probabilities",
           "'" + correction.kind + "'", "algorithm.old_logprobs=recompute");
    if (settings_.algorithm.loss.kind == "gmpo"
        && (correction.kind == "tis" || correction.kind == "icepop"
            || correction.kind == "geometric_mask"))
      fail("algorithm.correction.kind",
           "sequence_tis, sequence_mask or rejection with algorithm.loss "
           "gmpo, which has one ratio per response",
           "'" + correction.kind + "', a weight per token",
           "algorithm.correction.kind=sequence_mask");
    if (correction.floor >= correction.cap)
      fail(
        "algorithm.correction.floor",
        fmt::format("a number < algorithm.correction.cap ({})", correction.cap),
        fmt::format("{}", correction.floor), "");
  }

  void check_like() const {
    const auto& like = settings_.algorithm.like;
    const bool without_critic = like == "trl" || like == "nemo";
    if (without_critic && settings_.algorithm.advantage == "gae")
      fail("algorithm.like",
           "verl, openrlhf or areal with algorithm.advantage gae",
           "'" + like + "', known here without a critic only",
           "algorithm.like=verl");
  }

  void check_covariances() const {
    const auto& range = settings_.algorithm.loss.cov_range;
    if (range[0] >= range[1])
      fail("algorithm.cov_range", "[low, high] with low < high",
           fmt::format("[{}, {}]", range[0], range[1]), "[1, 5]");
  }

  void check_overlong() const {
    const int most = settings_.rollout.max_new_tokens;
    const int tokens = settings_.reward.long_response.overlong_tokens;
    if (tokens > most)
      fail("reward.overlong_tokens",
           fmt::format("a whole number <= rollout.max_new_tokens ({})", most),
           fmt::format("'{}'", tokens), std::to_string(most / 2));
  }

  void check_dynamic_sampling() const {
    if (settings_.algorithm.group.rounds > 1 && !settings_.run.replay.empty())
      fail("run.replay",
           "algorithm.dynamic_sampling.rounds 1: recorded samples are those "
           "that were trained on",
           fmt::format("{} rounds", settings_.algorithm.group.rounds),
           "algorithm.dynamic_sampling.rounds=1");
  }

  /// A mask is a list of at most top_k ids, of logits that training has too.
  void check_sampling_mask() const {
    const auto& rollout = settings_.rollout;
    if (!settings_.algorithm.loss.sampling_mask)
      return;
    if (rollout.top_k == 0)
      fail("rollout.top_k",
           "a whole number >= 1 with algorithm.sampling_mask: it bounds the "
           "tokens that are recorded of each",
           "'0', all tokens",
           "rollout.top_k=1024, of which top_p and min_p keep fewer");
    if (rollout.logprobs != "sampled")
      fail("rollout.logprobs",
           "sampled with algorithm.sampling_mask, which trains on the "
           "distribution that was sampled",
           "'" + rollout.logprobs + "'", "rollout.logprobs=sampled");
    if (rollout.repetition_penalty != 1)
      fail("rollout.repetition_penalty",
           "1 with algorithm.sampling_mask: it changes logits, which a mask "
           "does not record",
           fmt::format("{}", rollout.repetition_penalty),
           "rollout.repetition_penalty=1");
  }

  void check_ptx() const {
    if (settings_.data.ptx.empty())
      return;
    const int rows = ptx_rows(settings_);
    const int steps = settings_.algorithm.mini_batches;
    if (rows < steps)
      fail(settings_.data.ptx_batch_size > 0 ? "data.ptx_batch_size"
                                             : "data.batch_size",
           fmt::format("at least one row of data.ptx for each of the {} "
                       "optimizer steps (algorithm.mini_batches)",
                       steps),
           fmt::format("{}", rows),
           fmt::format("data.ptx_batch_size={}", steps));
  }

  /// KL is estimated from prompts with the completions of other rows.
  void check_labels() const {
    if (settings_.data.batch_size < 2)
      fail("data.batch_size",
           "at least 2 rows: KTO compares with the completions of other rows "
           "of a step",
           fmt::format("{}", settings_.data.batch_size), "data.batch_size=16");
  }

  /// A margin is read by the loss of reward models only, and is a number.
  void check_margin() const {
    const auto at = settings_.data.fields.find("margin");
    if (at == settings_.data.fields.end())
      return;
    if (workflow_reads(settings_.workflow, SettingsGroup::preference))
      fail("data.fields.margin", "it with workflow reward only",
           "workflow " + settings_.workflow + ", which would ignore it",
           "algorithm.pair_margin with algorithm.pair_loss simpo");
    if (workflow_reads(settings_.workflow, SettingsGroup::reward_pairs)
        && at->second.find_first_of("{}") != std::string::npos)
      fail("data.fields.margin", "a column of numbers",
           "the template '" + at->second + "'", "margin");
  }
};

} // namespace

void check_losses(const Settings& settings, const Place& whole) {
  const LossChecks checks(settings, whole);
  if (workflow_reads(settings.workflow, SettingsGroup::policy)) {
    checks.check_like();
    checks.check_correction();
    checks.check_covariances();
    checks.check_sampling_mask();
    checks.check_ptx();
  }
  if (workflow_reads(settings.workflow, SettingsGroup::labels))
    checks.check_labels();
  checks.check_margin();
  if (workflow_reads(settings.workflow, SettingsGroup::rewards))
    checks.check_overlong();
  if (workflow_reads(settings.workflow, SettingsGroup::advantages))
    checks.check_dynamic_sampling();
}

} // namespace troupe
