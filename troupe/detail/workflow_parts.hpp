// Parts of a Workflow: kinds of roles, what losses are averaged over, and the
// plain values that the layers below read.
#pragma once

#include "troupe/detail/workflow_functions.hpp"
#include "troupe/sample.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

class TrainBatch; // troupe/loss.hpp
struct Loss;      // troupe/loss.hpp
using LossFunction = Loss (*)(const TrainBatch&);

/// Kind of a role: `trained` or `frozen`, with `.scalar_head()` for values and
/// scores, `.like("actor")` to start from another role's weights,
/// `.follows("actor")` for the exponential moving average of a trained role:
/// settings models.NAME.ema_decay and ema_every.
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

/// Outputs of inference over given sequences.
enum class Infer : std::uint8_t { logprobs, values, scores };

/// Denominator of a loss: the number of the model's own tokens, or a key's sum
/// over them.
struct MeanOver {
  std::string key = {}; ///< empty: tokens
};
template <class T, Per P>
MeanOver mean_over(Key<T, P> key) {
  static_assert(detail::is_number_of_key<T>,
                "mean_over takes a key of numbers");
  return {key.name};
}

/// Roles that speak in conversations beside the role of the call.
struct With {
  std::vector<std::string> roles;
};
/// `with("opponent")`: a frozen role on the same devices, which
/// model("opponent") is.
template <class... Names>
With with(Names... names) {
  return {{std::string(names)...}};
}

namespace detail {

enum class UserKind : std::uint8_t {
  generate,
  infer,
  reward,
  each,
  groups,
  batch,
  train
};

struct UserRole {
  std::string name;
  RoleKind kind;
};

/// Parts of a call that only generation has.
struct UserGeneration {
  std::string prompt = {};            ///< key of its prompt tokens
  std::vector<std::string> with = {}; ///< roles that speak beside its own
};

struct UserCall {
  std::string name;
  UserKind kind = UserKind::each;
  std::string role = {};
  std::vector<KeyInfo> reads = {};
  std::vector<KeyInfo> writes = {};
  std::vector<CarriedInfo> carried_in = {}; ///< batch only
  std::vector<CarriedInfo> carried_out = {};
  SampleFunction function = {}; ///< each, groups, batch: if no `actor`
  const void* actor = nullptr;  ///< factory named by App::spawnable; generate:
                                ///< the conversation leader
  LossFunction loss = nullptr;
  MeanOver mean_over = {};
  Infer infer = Infer::logprobs;
  std::string prefix = {}; ///< prefix of its generate call's keys
  UserGeneration generation = {};
};

struct UserMetric {
  std::string name;
  KeyInfo key;
};

struct UserCarriedMetric {
  std::string name;
  std::string value; ///< name of the carried value
};

struct WorkflowParts {
  std::string name;
  std::string sentence;
  std::vector<UserRole> roles;
  std::vector<UserCall> calls;
  std::vector<UserMetric> metrics;
  std::vector<UserCarriedMetric> carried_metrics;
};

} // namespace detail

} // namespace troupe
