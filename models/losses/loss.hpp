// The interface between the engine and the losses: a loss is a pure function of
// the model's outputs for a packed batch and of denominators that are passed
// in, so any micro-batching or dp degree yields the same gradient (I1).
//
// Shapes: T tokens of the micro-batch (packed), N sequences in it. Entry t of a
// sequence belongs to its token t; entry 0 of logprobs, entropy, values is 0.
// K tokens are picked per entry.
#pragma once

#include "config/settings/python_functions.hpp"
#include "config/settings/settings_types.hpp"
#include "models/losses/policy_options.hpp"
#include "models/rl/known_keys.hpp"
#include "models/rl/metric_sums.hpp"
#include "models/rl/rl_math.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

/// Totals over the whole mini-batch, over all micro-batches and dp ranks.
struct Denominators {
  double tokens = 0;    ///< entries of mask_T that are 1
  double sequences = 0; ///< sequences with at least one such token
  double pairs = 0;     ///< preference pairs
  double weights = 0;   ///< LossEntry::mean_over, summed over mask_T
};

/// Numbers of `algorithm` that losses read; see `troupe explain algorithm`.
struct LossSettings {
  ClipRatio clip;
  PolicyOptions policy;
  CorrectionOptions correction;
  double value_clip = ValueLossSettings{}.clip;
  double entropy_coef = 0;
  PreferenceSettings preference;
  double distillation_beta = DistillationSettings{}.beta;
  double kl_coef = AlgorithmSettings{}.kl_coef;
  std::string kl_estimator = AlgorithmSettings{}.kl_estimator;
  bool kl_in_loss = false;
  LossMean mean = LossMean::token; ///< loss_mean
  double horizon = 1;              ///< tokens; for mean `sequence_horizon`
};

/// A micro-batch as input of a loss. Tensors are f32 on the CPU.
struct TrainBatch {
  std::vector<std::int64_t> cu_seqlens; ///< [N+1], in entries of T
  /// Leaves that require grad; undefined unless the loss's Exposes requests
  /// them.
  at::Tensor logprobs_T; ///< log p(token t | before) at the temperature
  at::Tensor entropy_T;  ///< of the distribution of token t, in nats
  at::Tensor picked_TK;  ///< log-probabilities of the picked tokens
  at::Tensor values_T;   ///< scalar head at position t-1: V before token t
  at::Tensor scores_N;   ///< scalar head at each sequence's last token; pairs
                         ///< alternate: chosen 0, rejected 0, chosen 1, ...
  at::Tensor mask_T;     ///< 0/1: loss_mask; entry 0 of a sequence is always 0
  /// [T] by key; [T, K] those beside picked tokens.
  std::map<std::string, at::Tensor, std::less<>> columns;

  std::int64_t num_sequences() const {
    return static_cast<std::int64_t>(cu_seqlens.size()) - 1;
  }
  /// Returns the column [T] of a per-token key (the first L entries of [L+1]
  /// keys such as `values`). Throws InvariantError if the rows lack it.
  const at::Tensor& at(std::string_view key) const;
  bool has(std::string_view key) const {
    return columns.find(key) != columns.end();
  }
};

struct LossResult {
  at::Tensor loss; ///< scalar, already divided by the global denominators
  MetricSums sums; ///< full metric names: "actor/pg_loss"
};

using LossFunction = std::function<LossResult(
  const TrainBatch&, const Denominators&, const LossSettings&)>;

/// Outputs of the model that a loss needs.
struct Exposes {
  bool logprobs = false;
  bool entropy = false;
  bool values = false;
  bool scores = false;
};

/// Tokens of each entry that a loss reads instead of the sampled one.
struct PickedKeys {
  std::string ids = {};                  ///< key of the ids [T, K]; "": none
  std::vector<std::string> columns = {}; ///< keys of numbers [T, K] beside them
};

/// A number of a loss that a carried value overrides.
struct CarriedSetting {
  std::string name; ///< carried value's name: "kl_coef"
  double LossSettings::*setting = nullptr;
};

struct LossEntry {
  std::string name; ///< `fn` of the call: "ppo_actor_loss"
  LossFunction function = {};
  Exposes exposes;
  std::string metric_prefix; ///< "actor/": prefix of grad_norm and lr
  /// Per-token keys that the loss reads through `at`, in addition to ids and
  /// mask.
  std::vector<std::string> columns;
  PickedKeys picked = {};
  std::string mean_over = {};       ///< one of `columns`, summed into `weights`
  bool pairs = false;               ///< rows are chosen_ids + rejected_ids
  std::vector<KnownKey> reads = {}; ///< required from a call in a file
  std::vector<CarriedSetting> carried = {};  ///< taken from previous steps
  std::optional<PythonFunction> python = {}; ///< what `function` has computed
};

/// Overrides the settings that `loss` takes from a carried value; does nothing
/// if it takes none of that name.
void take_carried(const LossEntry& loss, std::string_view name, double value,
                  LossSettings& settings);

/// A table of losses, both built-in and user-defined.
class Losses {
public:
  void add(LossEntry entry);
  /// Adds or replaces the loss of this name.
  void set(LossEntry entry);
  /// Returns a loss. Throws ConfigError naming the known losses.
  const LossEntry& find(std::string_view name) const;
  std::vector<std::string> names() const;

private:
  std::deque<LossEntry> entries_; ///< engines hold references to entries
};

/// Returns the table of this program: built-in losses (models/losses/*.cpp) and
/// added ones.
const Losses& losses();
/// Adds a user-defined loss, before any run. Throws InvariantError if the name
/// is taken.
void add_loss(LossEntry entry);
/// Adds or replaces a loss of a workflow file. An equal one stays where it is.
void set_file_loss(LossEntry entry);

} // namespace troupe::models
