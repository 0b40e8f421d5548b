#include "plans/advise/expressible.hpp"

#include "plans/plan/strategy_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace troupe::plans {

namespace {

constexpr std::uint32_t usual_degrees[] = {1, 2, 4, 8};

/// Enumerates layouts; each part is cut in every way that the system allows.
class LayoutSpace {
public:
  LayoutSpace(const Recipe& recipe, const PlanProblem& problem)
    : recipe_(recipe),
      problem_(problem),
      can_(abilities_of(recipe.system)),
      all_(problem.cluster.num_devices()),
      node_(problem.cluster.devices_per_node) {}

  std::vector<SystemLayout> all() {
    if (can_.colocated)
      add({0, all_}, {0, all_});
    if (can_.split && all_ > 1)
      for (const auto engines : {all_ / 4, all_ / 2, all_ - all_ / 4})
        if (engines > 0 && engines < all_
            && (all_ <= node_ || engines % node_ == 0))
          add({0, engines}, {engines, all_ - engines});
    if (can_.groups)
      add_groups();
    return std::move(layouts_);
  }

private:
  struct Span {
    std::uint32_t first;
    std::uint32_t count;
  };

  bool is_legal(std::uint32_t tp, std::uint32_t pp) const {
    return std::ranges::all_of(problem_.workflow.roles, [&](const Role& role) {
      const auto& shape = problem_.shapes.at(role.name);
      return is_legal_tp(shape, tp) && pp <= shape.num_layers;
    });
  }

  bool is_legal_engine(std::uint32_t tp) const {
    return is_legal_tp(problem_.shapes.at("actor"), tp);
  }

  std::vector<Strategy> engines(Span span) const {
    std::vector<Strategy> found;
    for (const auto tp : usual_degrees)
      if (tp <= node_ && span.count % tp == 0 && is_legal_engine(tp))
        found.push_back({.dp = span.count / tp, .tp = tp});
    return found;
  }

  std::vector<Strategy> trainings(Span span) const {
    std::vector<Strategy> found;
    const auto add_one = [&](std::uint32_t tp, std::uint32_t pp, Zero zero) {
      Strategy strategy{
        .dp = span.count / tp / pp, .pp = pp, .tp = tp, .zero = zero};
      if (strategy.dp == 1)
        strategy.zero = Zero::none;
      if (std::ranges::find(found, strategy) == found.end())
        found.push_back(strategy);
    };
    for (const auto zero : can_.zero)
      add_one(1, 1, zero == 3 ? Zero::z3 : zero > 0 ? Zero::z1 : Zero::none);
    for (const auto tp : usual_degrees)
      for (const auto pp : usual_degrees) {
        const bool plain = tp == 1 && pp == 1;
        if (span.count % (tp * pp) != 0 || tp > node_ || !is_legal(tp, pp)
            || (tp > 1 && !can_.tensor_training) || (pp > 1 && !can_.pipelines))
          continue;
        if (!plain || can_.pipelines)
          add_one(tp, pp, Zero::z1);
        if (can_.tensor_with_z3 && pp == 1 && !plain)
          add_one(tp, pp, Zero::z3);
      }
    return found;
  }

  /// Trained and frozen models that leave the devices while they are idle.
  struct Offload {
    bool optimizer = false;
    bool weights = false;
    bool frozen = false;
  };

  std::vector<Offload> offloads() const {
    std::vector<Offload> all = {{}};
    if (can_.offload.optimizer && can_.offload.optimizer_alone)
      all.push_back({.optimizer = true});
    if (can_.offload.optimizer && can_.offload.weights)
      all.push_back({.optimizer = true, .weights = true});
    if (can_.offload.frozen && has_frozen())
      for (auto offload : std::vector(all)) {
        offload.frozen = true;
        all.push_back(offload);
      }
    return all;
  }

  void add(Span generation, Span training) {
    const auto ways = offloads();
    for (const auto& engine : engines(generation))
      for (const auto& strategy : trainings(training))
        for (const auto& offload : ways)
          push(generation, engine, training, strategy, offload);
  }

  bool can_offload(const Strategy& strategy, const Offload& offload) const {
    const bool shards = strategy.zero == Zero::z3 || strategy.num_devices() < 2;
    return can_.offload.megatron || shards || !offload.optimizer;
  }

  bool has_frozen() const {
    return recipe_.layout.ref.count > 0 || recipe_.layout.reward.count > 0;
  }

  void push(Span generation, const Strategy& engine, Span training,
            const Strategy& strategy, const Offload& offload) {
    if (!can_offload(strategy, offload))
      return;
    auto layout = recipe_.layout;
    layout.generation.first = generation.first;
    layout.generation.count = generation.count;
    layout.generation.strategy = engine;
    for (auto* part :
         {&layout.actor, &layout.critic, &layout.ref, &layout.reward}) {
      if (part->count == 0)
        continue;
      const bool trains = part == &layout.actor || part == &layout.critic;
      part->first = training.first;
      part->count = training.count;
      part->strategy = strategy;
      if (!trains && strategy.zero == Zero::z1)
        part->strategy.zero = Zero::none;
      part->offload_optimizer = trains && offload.optimizer;
      part->offload_weights
        = trains ? offload.weights : frozen_leaves(*part, layout, offload);
    }
    layout.engine = layout.engine.empty() ? "vllm" : layout.engine;
    layout.engine_sleeps = generation.first == training.first;
    layouts_.push_back(layout);
  }

  /// Returns whether a frozen model is in host memory while it is idle.
  bool frozen_leaves(const LayoutPart& part, const SystemLayout& layout,
                     const Offload& offload) const {
    if (can_.offload.frozen_as_trained)
      return offload.weights;
    const bool has_flag
      = can_.offload.frozen && (can_.offload.reward || &part != &layout.reward);
    return has_flag ? offload.frozen : part.offload_weights;
  }

  /// Groups are powers of two: engines on half or a quarter, the rest for the
  /// models, ref beside the actor and reward beside the critic or each alone.
  void add_groups() {
    const bool has_critic = recipe_.layout.critic.count > 0;
    for (const auto engines_count : {all_ / 4, all_ / 2}) {
      if (engines_count == 0)
        continue;
      const auto rest = all_ - engines_count;
      for (std::uint32_t actor = 1; actor <= rest; actor *= 2)
        for (const bool beside : {true, false})
          add_group(engines_count, actor,
                    has_critic ? power_of_two(rest - actor) : 0, beside);
    }
  }

  static std::uint32_t power_of_two(std::uint32_t limit) {
    std::uint32_t number = limit > 0 ? 1 : 0;
    while (number > 0 && 2 * number <= limit)
      number *= 2;
    return number;
  }

  void add_group(std::uint32_t engines_count, std::uint32_t actor,
                 std::uint32_t critic, bool beside) {
    auto next = engines_count;
    const auto take = [&](std::uint32_t count) {
      const auto first = next;
      next += count;
      return Span{first, count};
    };
    const auto actor_span = take(actor);
    const auto& own = recipe_.layout;
    std::map<std::string_view, Span> spans;
    if (own.critic.count > 0) {
      if (critic == 0)
        return;
      // alone, ref and reward take half of what the critic would have
      const auto alone = !beside && critic > 1 ? critic / 2 : critic;
      spans["critic"] = take(alone);
    }
    const auto left = all_ - std::min(all_, next);
    if (own.ref.count > 0)
      spans["ref"] = beside ? actor_span : take(power_of_two(left / 2));
    if (own.reward.count > 0)
      spans["reward"] = beside && own.critic.count > 0
                          ? spans["critic"]
                          : take(power_of_two(all_ - std::min(all_, next)));
    for (const auto& [name, span] : spans)
      if (span.count == 0)
        return;
    if (next > all_)
      return;
    for (const auto& engine : engines({0, engines_count}))
      for (const bool offload : {false, true})
        push_group(engine, actor_span, spans, offload);
  }

  void push_group(const Strategy& engine, Span actor,
                  const std::map<std::string_view, Span>& spans, bool offload) {
    auto layout = recipe_.layout;
    layout.generation.first = 0;
    layout.generation.count = engine.num_devices();
    layout.generation.strategy = engine;
    layout.engine_sleeps = false;
    layout.engine = layout.engine.empty() ? "vllm" : layout.engine;
    const auto place = [&](LayoutPart& part, Span span, bool trains) {
      part.first = span.first;
      part.count = span.count;
      part.strategy
        = {.dp = span.count, .zero = span.count > 1 ? Zero::z3 : Zero::none};
      part.offload_weights = false;
      part.offload_optimizer = trains && offload;
    };
    place(layout.actor, actor, true);
    for (const auto& [role, span] : spans)
      place(role == "critic" ? layout.critic
            : role == "ref"  ? layout.ref
                             : layout.reward,
            span, role == "critic");
    layouts_.push_back(layout);
  }

  const Recipe& recipe_;
  const PlanProblem& problem_;
  const Abilities& can_;
  std::uint32_t all_;
  std::uint32_t node_;
  std::vector<SystemLayout> layouts_;
};

} // namespace

const Abilities& abilities_of(System system) {
  // sources: each system's documentation of its flags, read on 2026-11-26
  static const std::map<System, Abilities> table = {
    {System::verl, {.pipelines = true, .tensor_training = true}},
    {System::openrlhf,
     {.groups = true, .tensor_training = true, .zero = {2, 3}}},
    {System::trl,
     {.split = true,
      .zero = {0, 2, 3},
      .offload = {.frozen = false, .frozen_as_trained = true}}},
    {System::nemo_rl,
     {.split = true,
      .pipelines = true,
      .tensor_training = true,
      .tensor_with_z3 = true,
      .offload
      = {.optimizer_alone = false, .megatron = false, .frozen = false}}},
    {System::areal,
     {.split = true,
      .pipelines = true,
      .tensor_training = true,
      .tensor_with_z3 = true,
      .offload = {.weights = false, .optimizer = false, .frozen = false}}},
    {System::deepspeed_chat,
     {.zero = {0, 2, 3}, .offload = {.weights = false, .reward = false}}},
  };
  return table.at(system);
}

std::vector<SystemLayout> layouts_of(const Recipe& recipe,
                                     const PlanProblem& problem) {
  auto layouts = LayoutSpace(recipe, problem).all();
  for (auto& layout : layouts)
    layout.lag = layout.is_split() ? layout.lag : 0;
  return layouts;
}

std::vector<std::string> inexpressible(System system, const Workflow& workflow,
                                       const ExecutionPlan& plan) {
  const auto& can = abilities_of(system);
  std::vector<std::string> sentences;
  std::map<std::string, std::set<std::string>> by_role;
  std::set<std::vector<Rank>> training_spans;
  std::vector<std::string> chunked, pipelined, dealt;
  for (const auto& call : workflow.calls) {
    const auto placed = plan.calls.find(call.name);
    if (placed == plan.calls.end() || placed->second.devices.empty())
      continue;
    const auto& placement = placed->second;
    const auto text = to_string(placement.strategy) + " on "
                      + print_devices(placement.devices);
    if (call.kind != CallKind::generate) {
      by_role[call.role].insert(text);
      training_spans.insert(placement.devices);
    }
    if (placement.chunks > 1)
      chunked.push_back(call.name);
    if (placement.strategy.ep > 1)
      dealt.push_back(call.name);
    if (placement.strategy.pp > 1
        && (call.kind == CallKind::generate || !can.pipelines))
      pipelined.push_back(call.name);
  }
  for (const auto& [role, texts] : by_role)
    if (texts.size() > 1)
      sentences.push_back(
        fmt::format("{} has {} layouts ({} and {}): {} has one for all passes "
                    "of a model",
                    role, texts.size(), *texts.begin(),
                    *std::next(texts.begin()), to_string(system)));
  if (training_spans.size() > 1 && !can.groups)
    sentences.push_back(fmt::format(
      "its models score and train on {} different sets of devices: {} has one "
      "set for all",
      training_spans.size(), to_string(system)));
  const auto list
    = [&](const std::vector<std::string>& calls, const std::string& what,
          const std::string& why = "has no flag for it") {
        if (calls.empty())
          return;
        std::string names;
        for (const auto& name : calls)
          names += (names.empty() ? "" : ", ") + name;
        sentences.push_back(
          fmt::format("{} {}: {} {}", names, what, to_string(system), why));
      };
  list(chunked, "in chunks, which overlap with other calls");
  list(pipelined, "in pipeline stages");
  list(dealt, "with experts dealt to devices (e)",
       "is told no expert degrees here");
  return sentences;
}

} // namespace troupe::plans
