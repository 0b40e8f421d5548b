// Workflows as data: calls read and write keys of samples, edges follow from
// the keys. A key has exactly one writer; keys that no call writes come from
// the data set. Nothing here knows devices, tensors or actors.
#pragma once

#include "config/base/error.hpp"

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

/// Part of a step that a function needs to see at once.
enum class Scope : std::uint8_t { sample, group, batch };

/// Exponential moving average (EMA): after every `every`-th training of `role`
/// the weights become decay * own + (1 - decay) * trained.
struct EmaSource {
  std::string role = {};
  double decay = 0;
  std::uint32_t every = 1;

  bool operator==(const EmaSource&) const = default;
};

/// A set of weights with a purpose.
struct Role {
  std::string name = {};
  bool trained = false;
  bool scalar_head = false;
  std::optional<EmaSource> ema = {};
  bool changes_elsewhere = false; ///< by calls that are left out here

  bool operator==(const Role&) const = default;
  bool changes() const { ///< over the steps of a run
    return trained || ema;
  }
};

/// The name of a key in the workflow and the argument name by which the call's
/// fn knows it: `ref_inf` writes `ref_logprobs`, which its fn calls `logprobs`.
struct Rename {
  std::string key = {};
  std::string argument = {};

  bool operator==(const Rename&) const = default;
};

/// Rows of a call other than one batch of the step.
struct CallRows {
  /// Most times that it runs in a step, each on other rows of the data set;
  /// see keeps_groups.
  std::uint32_t rounds = 1;
  std::uint32_t ptx = 0; ///< rows of data.ptx that it also trains on

  bool operator==(const CallRows&) const = default;
};

/// Who carries out a call besides the engine of its role.
struct CallActors {
  /// A user-defined program's actor carries it out; with fn generate, programs
  /// of agents.command lead its samples.
  bool user_actor = false;
  /// Frozen roles that speak in its conversations too (second_roles.hpp).
  std::vector<std::string> with = {};
  bool servers = false; ///< generate it (rollout.engine)

  bool operator==(const CallActors&) const = default;
};

/// A model function call as the workflow defines it.
struct Call {
  std::string name = {};
  CallKind kind = CallKind::function;
  std::string role = {}; ///< empty for functions
  std::vector<std::string> reads = {};
  std::vector<std::string> writes = {};
  std::string fn = {}; ///< "ppo_actor_loss", "logprobs", "ppo_advantages", ...
  Scope scope = Scope::batch;
  std::vector<Rename> renames = {}; ///< keys whose name differs inside fn
  bool evaluates = false; ///< between steps, see plans/workflow/evaluation.hpp
  CallActors by = {};
  bool greedy = false; ///< makes or scores the greedy response; not logged
  CallRows rows = {};

  bool operator==(const Call&) const = default;
  /// Returns the name by which `fn` knows `key`.
  const std::string& argument(const std::string& key) const;
};

/// State that step n passes to step n+1; host functions own and update it.
struct CarriedValue {
  std::string name = {};
  double initial = 0;
  std::string metric = {}; ///< reports the value after a step; empty: none

  bool operator==(const CarriedValue&) const = default;
};

struct Workflow {
  std::string name = {};
  std::vector<Role> roles = {};
  std::vector<Call> calls = {}; ///< in an order that respects the edges
  std::vector<std::string> dataset_keys = {};
  bool samples_are_prompts = false; ///< `rollout.n` samples per data-set row
  std::vector<CarriedValue> carried = {};

  bool operator==(const Workflow&) const = default;
  /// Returns the call of that name; throws InvariantError if there is none, as
  /// `role` does.
  const Call& call(std::string_view name) const;
  const Role& role(std::string_view name) const;
  const Call* find_call(std::string_view name) const; ///< nullptr: none
  const Role* find_role(std::string_view name) const;
  /// Returns the call that writes `key`; nullptr: it comes from the data set.
  const Call* writer(std::string_view key) const;
};

/// Returns whether the call decides after each round which of its samples the
/// step goes on with: it returns those alone. Calls without rounds come after
/// it and see the kept samples only.
bool keeps_groups(const Call& call);
/// Returns the most rounds of a call.
std::uint32_t rounds_of(const Workflow& workflow);
/// Returns the workflow with one round of each call: what plans are timed for.
Workflow in_one_round(Workflow workflow);

/// Returns the indices of the calls whose keys `workflow.calls[i]` reads,
/// ascending and unique.
std::vector<std::uint32_t> producers(const Workflow& workflow, std::size_t i);

/// Returns a copy of `call` with `prefix` before its name and every key that it
/// writes: it reads the prefixed keys of other calls of `workflow`, and those
/// of the data set as they are.
Call twin_of(const Workflow& workflow, const Call& call,
             const std::string& prefix);

/// Returns the names of the calls that make `keys` out of rows of the data set.
std::set<std::string> makers_of(const Workflow& workflow,
                                std::vector<std::string> keys);

/// Returns whether a name has only letters, digits, _ and -.
bool is_plain_name(std::string_view name);

/// Places in a file of "calls.NAME" and "roles.NAME"; empty: not from a file.
using WorkflowPlaces = std::map<std::string, Place>;

/// Rejects cycles, two writers of a key, keys without a source, unused data-set
/// keys, unknown roles, roles without calls, duplicate names. Throws
/// ConfigError with one sentence that includes the nearest name.
void check(const Workflow& workflow, const WorkflowPlaces& places = {});

/// Output of a model: one number per vocabulary entry, or one number.
enum class Head : std::uint8_t { vocabulary, scalar };

/// Throws ConfigError if the role of `call` has another head than its code
/// needs. `check` does this but for trainings, whose loss knows.
void check_head(const Workflow& workflow, const Call& call, Head wanted,
                const WorkflowPlaces& places = {});

/// Makes a workflow from settings, for each entry of config's workflow_table.
using WorkflowMaker = std::function<Workflow(const Settings&)>;
/// Registers an App's workflow. Throws ConfigError if the name is taken.
void add_workflow_maker(const std::string& name, WorkflowMaker make);

/// Returns the workflow that the settings ask for, checked. Settings change the
/// dataflow (`algorithm.old_logprobs`, `algorithm.kl_in`). Throws ConfigError
/// at the place of the setting for unknown workflows and roles.
Workflow make_workflow(const Settings& settings);

/// Workflow of a command (config: is_command), whose model is the only one of
/// the settings: generates responses to prompts.
Workflow generate_workflow(const Settings& settings);
/// Workflow of a command: log-probabilities of given tokens, scores, values.
Workflow score_workflow(const Settings& settings);
/// Workflow of a command: a model is loaded, then saved; its call never runs.
Workflow convert_workflow(const Settings& settings);
Workflow sft_workflow(const Settings& settings);
Workflow reward_workflow(const Settings& settings);
Workflow dpo_workflow(const Settings& settings);
Workflow kto_workflow(const Settings& settings);
Workflow ppo_workflow(const Settings& settings);
Workflow grpo_workflow(const Settings& settings);
Workflow distillation_workflow(const Settings& settings);

} // namespace troupe::plans
