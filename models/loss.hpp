// The seam between the engine and the losses: a loss is a pure function of what
// the model said about a packed batch and of denominators that come in from
// outside, so any micro-batching or dp degree gives the same gradient (I1).
//
// Shapes: T tokens of the micro-batch (packed), N sequences in it. Entry t of a
// sequence speaks of its token t; entry 0 of logprobs, entropy, values is 0.
#pragma once

#include "models/known_keys.hpp"
#include "models/rl_math.hpp"
#include "models/sums.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

/// Totals over the whole mini-batch, over all micro-batches and dp ranks.
struct Denominators {
  double tokens = 0;    ///< entries of mask_T that are 1
  double sequences = 0; ///< sequences with at least one such token
  double pairs = 0;     ///< preference pairs
  double weights = 0;   ///< of LossEntry::mean_over, over entries of mask_T
};

/// Numbers of `algorithm` that losses read; see `troupe explain algorithm`.
struct LossSettings {
  double clip_low = 0.2;
  double clip_high = 0.2;
  double dual_clip = 0; ///< 0 = off
  double value_clip = 0.2;
  double entropy_coef = 0;
  double beta = 0.1;
  double kl_coef = 0;
  std::string kl_estimator = "k1";
  bool kl_in_loss = false;
  LossMean mean = LossMean::token; ///< loss_mean
  double horizon = 1;              ///< tokens; of mean `sequence_horizon`
};

/// A micro-batch as a loss sees it. Tensors are f32 on the CPU.
struct TrainBatch {
  std::vector<std::int64_t> cu_seqlens; ///< [N+1], in entries of T
  /// Leaves that require grad; undefined unless the loss's Exposes asks.
  at::Tensor logprobs_T; ///< log p(token t | before) at the temperature
  at::Tensor entropy_T;  ///< of the distribution that token t came from, nats
  at::Tensor values_T;   ///< scalar head at position t-1: V before token t
  at::Tensor scores_N;   ///< scalar head at each sequence's last token;
                         ///< pairs alternate: chosen 0, rejected 0, chosen 1..
  at::Tensor mask_T;     ///< 0/1: loss_mask, entry 0 of a sequence always 0
  std::map<std::string, at::Tensor, std::less<>> columns; ///< [T] by key

  std::int64_t num_sequences() const {
    return static_cast<std::int64_t>(cu_seqlens.size()) - 1;
  }
  /// Column [T] of a per-token key (of [L+1] keys such as `values` the first L
  /// entries). Throws InvariantError where the rows did not bring it.
  const at::Tensor& at(std::string_view key) const;
  bool has(std::string_view key) const {
    return columns.find(key) != columns.end();
  }
};

struct LossResult {
  at::Tensor loss; ///< scalar, already divided by the global denominators
  Sums sums;       ///< full metric names: "actor/pg_loss"
};

using LossFunction = std::function<LossResult(
  const TrainBatch&, const Denominators&, const LossSettings&)>;

/// What the model must expose to a loss.
struct Exposes {
  bool logprobs = false;
  bool entropy = false;
  bool values = false;
  bool scores = false;
};

struct LossEntry {
  std::string name; ///< `fn` of the call: "ppo_actor_loss"
  LossFunction function = {};
  Exposes exposes;
  std::string metric_prefix; ///< "actor/": of grad_norm and lr
  /// Per-token keys that the loss reads through `at`, beside ids and mask.
  std::vector<std::string> columns;
  std::string mean_over = {}; ///< one of them, summed into `weights`; or none
  bool pairs = false;         ///< rows are chosen_ids + rejected_ids
  std::vector<KnownKey> reads = {}; ///< that a file's call must bring
};

/// The table of losses; built-ins and users'.
class Losses {
public:
  void add(LossEntry entry);
  /// Throws ConfigError naming the known losses.
  const LossEntry& find(std::string_view name) const;
  std::vector<std::string> names() const;

private:
  std::vector<LossEntry> entries_;
};

/// The table of this program: built in (models/losses/*.cpp), and what was
/// added.
const Losses& losses();
/// Adds an own program's, before any run. Throws InvariantError for a name that
/// is there.
void add_loss(LossEntry entry);

} // namespace troupe::models
