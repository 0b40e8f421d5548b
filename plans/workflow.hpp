// Workflows as data: calls read and write keys of samples, edges follow from
// the keys. A key has exactly one writer; keys that no call writes come from
// the data set. Nothing here knows devices, tensors or actors.
#pragma once

#include "config/error.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {
struct Settings;
}

namespace troupe::plans {

enum class CallKind : std::uint8_t { generate, inference, train, function };
std::string_view to_string(CallKind kind);

/// How much of a step a function wants to see at once.
enum class Scope : std::uint8_t { sample, group, batch };

/// After every `every`-th training of `role` a follower's weights become decay
/// * own + (1 - decay) * trained: an exponential moving average (EMA).
struct Following {
  std::string role = {};
  double decay = 0;
  std::uint32_t every = 1;

  bool operator==(const Following&) const = default;
};

/// A set of weights with a job.
struct Role {
  std::string name = {};
  bool trained = false;
  bool scalar_head = false;
  std::optional<Following> follows = {};

  bool operator==(const Role&) const = default;
  bool changes() const { ///< over the steps of a run
    return trained || follows;
  }
};

/// The workflow's word for a key and the word by which the call's fn knows it:
/// `ref_inf` writes `ref_logprobs`, which its fn calls `logprobs`.
struct Rename {
  std::string key = {};
  std::string argument = {};

  bool operator==(const Rename&) const = default;
};

/// A model function call as the workflow defines it.
struct Call {
  std::string name = {};
  CallKind kind = CallKind::function;
  std::string role = {}; ///< empty for functions
  std::vector<std::string> reads = {};
  std::vector<std::string> writes = {};
  std::string fn = {}; ///< "ppo_actor_loss", "logprobs", "ppo_advantages", ..
  Scope scope = Scope::batch;
  std::vector<Rename> renames = {}; ///< keys whose name differs inside fn
  bool evaluates = false;           ///< between steps, see plans/evaluation.hpp
  bool own_actor = false;           ///< an own program's actor carries it out
  bool greedy = false; ///< makes or scores the likeliest answer, in silence

  bool operator==(const Call&) const = default;
  /// The name by which `fn` knows `key`.
  const std::string& argument(const std::string& key) const;
};

/// State that step n passes to step n+1; host functions own and update it.
struct CarriedValue {
  std::string name = {};
  double initial = 0;
  std::string metric = {}; ///< that shows what a step left; empty: none

  bool operator==(const CarriedValue&) const = default;
};

struct Workflow {
  std::string name = {};
  std::vector<Role> roles = {};
  std::vector<Call> calls = {}; ///< in an order that respects the edges
  std::vector<std::string> dataset_keys = {};
  bool samples_are_prompts = false; ///< `rollout.n` samples a data-set row
  std::vector<CarriedValue> carried = {};

  bool operator==(const Workflow&) const = default;
  /// Throw InvariantError for a name that does not exist.
  const Call& call(std::string_view name) const;
  const Role& role(std::string_view name) const;
  const Call* find_call(std::string_view name) const; ///< nullptr: none
  const Role* find_role(std::string_view name) const;
  /// The call that writes `key`; nullptr: it comes from the data set.
  const Call* writer(std::string_view key) const;
};

/// Indices of the calls whose keys `workflow.calls[i]` reads, ascending, each
/// once.
std::vector<std::uint32_t> producers(const Workflow& workflow, std::size_t i);

/// `call` again, named and writing with `prefix` before every name: it reads
/// what other calls of `workflow` wrote under their prefixed keys, the data set
/// under its own.
Call twin_of(const Workflow& workflow, const Call& call,
             const std::string& prefix);

/// Names of the calls that make `keys` out of rows of the data set.
std::set<std::string> makers_of(const Workflow& workflow,
                                std::vector<std::string> keys);

/// Letters, digits, _ and -.
bool is_plain_name(std::string_view name);

/// Where a file says "calls.NAME" and "roles.NAME"; empty: it is no file's.
using WorkflowPlaces = std::map<std::string, Place>;

/// Refuses cycles, two writers of a key, keys without a source, data-set keys
/// nobody reads, unknown roles, roles without calls, doubled names. Throws
/// ConfigError with one sentence that holds the nearest name.
void check(const Workflow& workflow, const WorkflowPlaces& places = {});

/// What a model ends in: a number for each word, or one number.
enum class Head : std::uint8_t { vocabulary, scalar };

/// Throws ConfigError where the role of `call` has another head than its code
/// wants. `check` asks this of calls that generate or infer; what a training
/// wants only its loss knows.
void check_head(const Workflow& workflow, const Call& call, Head wanted,
                const WorkflowPlaces& places = {});

/// How a workflow is made from settings, for each of config's workflow_table.
using WorkflowMaker = std::function<Workflow(const Settings&)>;
/// Of a workflow that an App added to the table. Throws ConfigError where the
/// name is taken.
void add_workflow_maker(const std::string& name, WorkflowMaker make);

/// The workflow that the settings ask for, checked. Settings change the
/// dataflow (`algorithm.old_logprobs`, `algorithm.kl_in`). Throws ConfigError
/// at the place of the setting for unknown workflows and roles.
Workflow make_workflow(const Settings& settings);

/// Of verbs (config: is_verb), whose model is the only one of the
/// settings: answers to prompts, ..
Workflow generate_workflow(const Settings& settings);
/// .. log-probabilities of given tokens, or scores and values, ..
Workflow score_workflow(const Settings& settings);
/// .. and a model that is loaded, then saved; its call never runs.
Workflow convert_workflow(const Settings& settings);
Workflow sft_workflow(const Settings& settings);
Workflow reward_workflow(const Settings& settings);
Workflow dpo_workflow(const Settings& settings);
Workflow ppo_workflow(const Settings& settings);
Workflow grpo_workflow(const Settings& settings);

} // namespace troupe::plans
