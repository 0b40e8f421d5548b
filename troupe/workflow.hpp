// A user-defined workflow: roles, calls on roles, actors, functions and losses,
// connected by the keys that they read and write.
//
//   Workflow w{"best_of_n"};
//   w.role("actor", trained);
//   w.generate("actor_gen", "actor");
//   w.each("check", checker, reads(keys::response), writes(tool_score));
//   w.train("actor_train", "actor", my_loss, reads(keep), mean_over(keep));
#pragma once

#include "troupe/detail/workflow_parts.hpp"

namespace troupe {

class Workflow {
public:
  /// Creates an empty workflow; `troupe explain workflow` prints `sentence`.
  explicit Workflow(std::string name, std::string sentence = "your own") {
    parts_.name = std::move(name);
    parts_.sentence = std::move(sentence);
  }

  /// Adds a set of weights: models.NAME of the settings.
  Workflow& role(std::string name, RoleKind kind) {
    parts_.roles.push_back({std::move(name), std::move(kind)});
    return *this;
  }

  /// Adds generation of responses to prompts: writes sequence_ids, loss_mask,
  /// logprobs, truncated.
  Workflow& generate(std::string name, std::string role) {
    return generate(std::move(name), std::move(role), keys::prompt_ids, "");
  }
  /// Adds generation from other prompt tokens, which writes keys whose names
  /// begin with `prefix`: "b_" for b_sequence_ids, ..., and b_response for its
  /// text.
  Workflow& generate(std::string name, std::string role,
                     Key<std::int32_t, per_token> prompt, std::string prefix) {
    auto& call = add(std::move(name), detail::UserKind::generate);
    call.role = std::move(role);
    call.generation.prompt = prompt.name;
    call.prefix = std::move(prefix);
    return *this;
  }

  /// Adds conversations with a role: a user-defined actor whose factory takes a
  /// Model leads the conversation of each sample, turn by turn
  /// (troupe/model.hpp). Writes what generate() writes, all turns in one
  /// sequence, and the keys of `writes`.
  template <class F, class... R, class... W>
  Workflow& converse(std::string name, std::string role, F actor,
                     Reads<R...> reads, Writes<W...> writes,
                     std::string prefix = "") {
    static_assert(
      detail::is_user_actor<F> && detail::leads_conversations<F>,
      "converse() needs the factory of a user-defined actor that takes a "
      "troupe::Model");
    auto& call
      = add(std::move(name), detail::UserKind::generate, reads, writes);
    call.role = std::move(role);
    call.generation.prompt = keys::prompt_ids.name;
    call.prefix = std::move(prefix);
    call.actor = detail::factory_id(actor);
    return *this;
  }

  /// Adds conversations in which other roles speak too (troupe/model.hpp):
  /// frozen ones, whose tokens are read and not trained on.
  template <class F, class... R, class... W>
  Workflow& converse(std::string name, std::string role, F actor,
                     Reads<R...> reads, Writes<W...> writes, With with,
                     std::string prefix = "") {
    converse(std::move(name), std::move(role), actor, reads, writes,
             std::move(prefix));
    parts_.calls.back().generation.with = std::move(with.roles);
    return *this;
  }

  /// Adds inference of a role over the sequence_ids of the generate call with
  /// this prefix.
  template <class K>
  Workflow& infer(std::string name, std::string role, Infer what,
                  Writes<K> writes, std::string prefix = "") {
    auto& call = add(std::move(name), detail::UserKind::infer);
    call.role = std::move(role);
    call.infer = what;
    call.writes = writes.infos();
    call.prefix = std::move(prefix);
    return *this;
  }

  /// Adds the reward that `reward:` of the settings defines for each response
  /// of the generate call with this prefix: a rule, a Python file, a program or
  /// a server. It runs while other responses are still being generated.
  Workflow& reward(std::string name, Writes<Key<float>> score,
                   std::string prefix = "") {
    auto& call = add(std::move(name), detail::UserKind::reward);
    call.writes = score.infos();
    call.prefix = std::move(prefix);
    return *this;
  }

  /// Adds a call per sample: a function of the keys' values, or a user-defined
  /// actor.
  template <class F, class... R, class... W>
  Workflow& each(std::string name, F f, Reads<R...> reads,
                 Writes<W...> writes) {
    static_assert(
      !detail::leads_conversations<F>,
      "a user-defined actor that takes a troupe::Model leads conversations: "
      "use converse()");
    auto& call = add(std::move(name), detail::UserKind::each, reads, writes);
    if constexpr (detail::is_user_actor<F>)
      call.actor = detail::factory_id(f);
    else
      call.function = detail::over_each(f, reads, writes);
    return *this;
  }
  /// Adds a call per prompt over all of its samples: a function of vectors, in
  /// sample order.
  template <class F, class... R, class... W>
  Workflow& groups(std::string name, F f, Reads<R...> reads,
                   Writes<W...> writes) {
    add(std::move(name), detail::UserKind::groups, reads, writes).function
      = detail::over_all(f, reads, writes);
    return *this;
  }
  /// Adds a call over all samples of the step, which may also read and write
  /// carried values.
  template <class F, class... R, class... W>
  Workflow& batch(std::string name, F f, Reads<R...> reads,
                  Writes<W...> writes) {
    auto& call = add(std::move(name), detail::UserKind::batch);
    call.reads = detail::infos_of<KeyInfo>(reads.keys);
    call.writes = detail::infos_of<KeyInfo>(writes.keys);
    call.carried_in = detail::infos_of<CarriedInfo>(reads.keys);
    call.carried_out = detail::infos_of<CarriedInfo>(writes.keys);
    call.function = detail::over_all(f, reads, writes);
    return *this;
  }

  /// Adds optimizer steps of a role on the sequence_ids of the generate call
  /// with this prefix, where loss_mask is 1.
  template <class F, class... R>
  Workflow& train(std::string name, std::string role, F loss, Reads<R...> reads,
                  MeanOver mean_over = {}, std::string prefix = "") {
    static_assert((detail::is_loss_key<R> && ...),
                  "a loss reads keys of numbers: let a function make one of "
                  "the text");
    constexpr bool fits = std::is_convertible_v<F, LossFunction>;
    static_assert(fits, "a loss is a function troupe::Loss(const "
                        "troupe::TrainBatch&) of troupe/loss.hpp, without "
                        "captures");
    auto& call = add(std::move(name), detail::UserKind::train);
    call.role = std::move(role);
    if constexpr (fits)
      call.loss = loss;
    call.reads = reads.infos();
    call.mean_over = std::move(mean_over);
    call.prefix = std::move(prefix);
    return *this;
  }

  /// Adds a metric: the mean of a key over the step's samples (per token: over
  /// their tokens).
  template <class T, Per P>
  Workflow& metric(std::string name, Key<T, P> key) {
    static_assert(detail::is_number_of_key<T>, "a metric is a key of numbers");
    parts_.metrics.push_back({std::move(name), info(key)});
    return *this;
  }
  /// Adds a metric: a carried value at the end of the step.
  template <class T>
  Workflow& metric(std::string name, Carried<T> value) {
    parts_.carried_metrics.push_back({std::move(name), value.name});
    return *this;
  }

  const detail::WorkflowParts& parts() const {
    return parts_;
  }

private:
  detail::UserCall& add(std::string name, detail::UserKind kind) {
    return parts_.calls.emplace_back(
      detail::UserCall{.name = std::move(name), .kind = kind});
  }
  template <class R, class W>
  detail::UserCall& add(std::string name, detail::UserKind kind, const R& reads,
                        const W& writes) {
    auto& call = add(std::move(name), kind);
    call.reads = reads.infos();
    call.writes = writes.infos();
    return call;
  }

  detail::WorkflowParts parts_;
};

} // namespace troupe
