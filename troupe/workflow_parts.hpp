// What a Workflow is made of: kinds of roles, what losses are means over, and
// the plain values that the layers below read.
#pragma once

#include "troupe/sample.hpp"
#include "troupe/workflow_functions.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

class TrainBatch; // troupe/loss.hpp
struct Loss;      // troupe/loss.hpp
using LossFunction = Loss (*)(const TrainBatch&);

/// What a role is: `trained` or `frozen`, with `.scalar_head()` for values and
/// scores, `.like("actor")` for one that starts from another's weights,
/// `.follows("actor")` for a moving average of a trained one's: settings
/// models.NAME.ema_decay and ema_every.
struct RoleKind {
  bool is_trained = false;
  bool has_scalar_head = false;
  std::string default_path_of = {};
  std::string followed = {};

  RoleKind scalar_head() const {
    RoleKind kind = *this;
    kind.has_scalar_head = true;
    return kind;
  }
  RoleKind like(std::string role) const {
    RoleKind kind = *this;
    kind.default_path_of = std::move(role);
    return kind;
  }
  RoleKind follows(std::string role) const {
    RoleKind kind = *this;
    kind.followed = std::move(role);
    return kind;
  }
};
inline const RoleKind trained{.is_trained = true};
inline const RoleKind frozen{};

/// What a model says about given sequences.
enum class Infer : std::uint8_t { logprobs, values, scores };

/// Over what a loss is a mean: the model's tokens, or a key's sum over them.
struct MeanOver {
  std::string key = {}; ///< empty: tokens
};
template <class T, Per P>
MeanOver mean_over(Key<T, P> key) {
  static_assert(detail::is_number_of_key<T>,
                "mean_over takes a key of numbers");
  return {key.name};
}

namespace detail {

enum class OwnKind : std::uint8_t {
  generate,
  infer,
  reward,
  each,
  groups,
  batch,
  train
};

struct OwnRole {
  std::string name;
  RoleKind kind;
};

struct OwnCall {
  std::string name;
  OwnKind kind = OwnKind::each;
  std::string role = {};
  std::vector<KeyInfo> reads = {};
  std::vector<KeyInfo> writes = {};
  std::vector<CarriedInfo> carried_in = {}; ///< of batch
  std::vector<CarriedInfo> carried_out = {};
  SampleFunction function = {}; ///< of each, groups and batch, or ..
  const void* actor = nullptr;  ///< .. the factory that App::spawnable names;
                                ///< of generate: who leads conversations
  LossFunction loss = nullptr;
  MeanOver mean_over = {};
  Infer infer = Infer::logprobs;
  std::string prefix = {}; ///< of the keys that its generate call writes
  std::string prompt = {}; ///< generate: the key that it continues
};

struct OwnMetric {
  std::string name;
  KeyInfo key;
};

struct OwnCarriedMetric {
  std::string name;
  std::string value; ///< the carried value's name
};

struct WorkflowParts {
  std::string name;
  std::string sentence;
  std::vector<OwnRole> roles;
  std::vector<OwnCall> calls;
  std::vector<OwnMetric> metrics;
  std::vector<OwnCarriedMetric> carried_metrics;
};

} // namespace detail

} // namespace troupe
