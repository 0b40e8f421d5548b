#include "plans/schedule/step_graph.hpp"

#include "config/base/error.hpp"
#include "plans/schedule/server_updates.hpp"
#include "plans/schedule/task_tracker.hpp"
#include "plans/weights/residency.hpp"

#include <fmt/format.h>

#include <iterator>
#include <set>

namespace troupe::plans {

namespace {

/// Adds a need; a task that needs both rows and weights of another waits for
/// the weights.
void add_need(TaskTemplate& task, const Need& need) {
  const auto same = std::ranges::find_if(task.needs, [&](const Need& n) {
    return n.task == need.task && n.steps_back == need.steps_back;
  });
  if (same == task.needs.end())
    task.needs.push_back(need);
  else if (same->edge == Edge::data && need.edge == Edge::version)
    same->edge = Edge::version;
}

std::vector<Rank> union_of(const std::vector<Rank>& a,
                           const std::vector<Rank>& b) {
  std::set<Rank> both(a.begin(), a.end());
  both.insert(b.begin(), b.end());
  return {both.begin(), both.end()};
}

/// Builds the templates. A call without chunks has one task, and where no call
/// has chunks, indices of calls in workflow and graph agree. The chunks of a
/// call follow each other: tasks that wait for the call's start or end use the
/// first or the last of them.
class GraphBuilder {
public:
  GraphBuilder(const Workflow& workflow, const ExecutionPlan& plan,
               const Replicas& replicas)
    : workflow_(workflow),
      plan_(plan),
      replicas_(replicas) {}

  StepGraph build() {
    for (const auto& call : workflow_.calls)
      add_call(call);
    for (std::uint32_t i = 0; i < workflow_.calls.size(); ++i) {
      for (const auto producer : producers(workflow_, i))
        add_data(producer, i);
      add_order(i);
    }
    for (const auto& call : workflow_.calls)
      if (keeps_groups(call) && call.rows.rounds > 1)
        add_rounds(call);
    for (const auto& role : workflow_.roles)
      if (role.trained)
        add_role(role.name);
    for (const auto& role : workflow_.roles)
      if (role.ema)
        add_ema_model(role);
    add_server_updates(graph_, workflow_, replicas_);
    for (const auto& call : workflow_.calls)
      add_stay(call);
    return std::move(graph_);
  }

private:
  struct Chunks {
    std::uint32_t first = 0; ///< task of the first chunk
    std::uint32_t count = 1;
    bool are_slices = false;
    std::uint32_t last() const {
      return first + count - 1;
    }
  };

  /// Adds the tasks of a call; functions without a placement run on the host.
  void add_call(const Call& call) {
    const auto placement = plan_.calls.find(call.name);
    const bool placed = placement != plan_.calls.end();
    TROUPE_CHECK(placed || call.kind == CallKind::function,
                 fmt::format("call '{}' has no placement", call.name));
    if (plan_.slices_of(call.name) > 1)
      return add_slices(call, placement->second);
    const auto lag = plan_.lag_of(call.name);
    const bool in_rounds = call.rows.rounds > 1;
    auto count
      = placed ? static_cast<std::uint32_t>(placement->second.chunks) : 1u;
    if (in_rounds)
      count = call.rows.rounds;
    chunks_.push_back({static_cast<std::uint32_t>(graph_.tasks.size()), count});
    for (std::uint32_t chunk = 0; chunk < count; ++chunk)
      graph_.tasks.push_back(
        {.name
         = count == 1 ? call.name : fmt::format("{}[{}]", call.name, chunk),
         .call = call.name,
         .role = call.role,
         .devices = placed ? placement->second.devices : std::vector<Rank>{},
         .lag = lag,
         .part = in_rounds ? TaskPart{.round = chunk}
                           : TaskPart{.chunk = chunk, .chunks = count}});
    graph_.max_lag = std::max(graph_.max_lag, lag);
  }

  /// Adds the tasks of a call in slices, each with a lag of its own.
  void add_slices(const Call& call, const Placement& placement) {
    const auto count = plan_.slices_of(call.name);
    chunks_.push_back(
      {static_cast<std::uint32_t>(graph_.tasks.size()), count, true});
    for (std::uint32_t i = 0; i < count; ++i)
      graph_.tasks.push_back(
        {.name = fmt::format("{}/slice{}", call.name, i),
         .call = call.name,
         .role = call.role,
         .devices = placement.devices,
         .lag = slice_lag(plan_.lag_of(call.name), {i, count}),
         .part = {.slice = {i, count}}});
    graph_.max_lag = std::max(graph_.max_lag, plan_.most_lag_of(call.name));
  }

  /// Returns tasks that read weights of one version each: the slices of a call,
  /// or all its chunks.
  std::vector<Chunks> readers_of(const std::string& call) const {
    const auto& all = chunks_of(call);
    if (!all.are_slices)
      return {all};
    std::vector<Chunks> slices;
    for (auto task = all.first; task <= all.last(); ++task)
      slices.push_back({task});
    return slices;
  }

  /// Makes slices that share a version run in a row, the newest step first, and
  /// each after the one before of its own step.
  void add_slices_in_a_row(const Chunks& all) {
    for (auto task = all.first; task <= all.last(); ++task) {
      add_need(graph_.tasks[task], {task, 1, Edge::order});
      if (task == all.first)
        continue;
      add_need(graph_.tasks[task], {task - 1, 0, Edge::data});
      add_need(graph_.tasks[task], {task - 1, -1, Edge::order});
    }
  }

  /// Makes each chunk of the reader need the writer's chunks that share samples
  /// with it.
  void add_data(std::uint32_t writer, std::uint32_t reader) {
    auto from = chunks_[writer];
    auto to = chunks_[reader];
    if (from.are_slices)
      from = {from.last()}; // writes what others read
    if (to.are_slices)
      to = {to.first};
    for (std::uint32_t i = 0; i < to.count; ++i) {
      const auto first = i * from.count / to.count;
      const auto last = ((i + 1) * from.count + to.count - 1) / to.count;
      for (auto k = first; k < last; ++k)
        add_need(graph_.tasks[to.first + i], {from.first + k, 0, Edge::data});
    }
  }

  void add_order(std::uint32_t call) {
    const auto& all = chunks_[call];
    if (all.are_slices)
      return add_slices_in_a_row(all);
    for (std::uint32_t i = 1; i < all.count; ++i)
      add_need(graph_.tasks[all.first + i],
               {all.first + i - 1, 0, Edge::order});
    add_need(graph_.tasks[all.first], {all.last(), 1, Edge::order});
  }

  /// Makes each round wait for the decision after the one before, and the calls
  /// after all rounds for the last decision.
  void add_rounds(const Call& keeper) {
    const auto& decisions = chunks_of(keeper.name);
    for (const auto& call : workflow_.calls) {
      const auto& tasks = chunks_of(call.name);
      const bool in_rounds = call.rows.rounds > 1;
      for (std::uint32_t i = in_rounds ? 1 : 0; i < tasks.count; ++i)
        if (&call != &keeper)
          add_need(graph_.tasks[tasks.first + i],
                   {in_rounds ? decisions.first + i - 1 : decisions.last(), 0,
                    Edge::data});
    }
  }

  const Chunks& chunks_of(const std::string& call) const {
    return chunks_[static_cast<std::size_t>(&workflow_.call(call)
                                            - workflow_.calls.data())];
  }

  /// Adds the reload and offload of planes that are on the device for this call
  /// only: right before it, in the order of their devices, and after it. They
  /// wait for the planes' version, not for the call's rows.
  void add_stay(const Call& call) {
    if (!comes_and_goes(workflow_, plan_, replicas_, call))
      return;
    const auto& chunks = chunks_of(call.name);
    auto& first = first_on_replica(graph_, chunks.first);
    const auto reload = static_cast<std::uint32_t>(graph_.tasks.size());
    TaskTemplate stay{.name = fmt::format("reload {}@{}", call.role, call.name),
                      .kind = TaskKind::reload,
                      .call = call.name,
                      .role = call.role,
                      .target = replicas_.of_call(call.name),
                      .devices = first.devices,
                      .needs = {},
                      .lag = first.lag,
                      .right_before = chunks.first};
    std::ranges::copy_if(
      first.needs, std::back_inserter(stay.needs), [](const Need& need) {
        return need.edge == Edge::version || need.edge == Edge::order;
      });
    add_need(first, {reload, 0, Edge::version});
    graph_.tasks.push_back(stay);
    stay.name = fmt::format("offload {}@{}", call.role, call.name);
    stay.kind = TaskKind::offload;
    stay.right_before = {};
    stay.needs = {{chunks.last(), 0, Edge::write_after_read}};
    graph_.tasks.push_back(stay);
    wait_for_offload(call, reload + 1);
    ema_update_after(call, reload + 1);
  }

  /// Makes moves from an offloaded replica wait for its copy in host memory,
  /// which they read: it must have been written, and is not written again
  /// before they have read it (the training before it waits for them).
  void wait_for_offload(const Call& call, std::uint32_t offload) {
    if (call.kind != CallKind::train)
      return;
    for (auto& task : graph_.tasks)
      if (task.kind == TaskKind::move
          && replicas_[*task.source].role == call.role)
        add_need(task,
                 {offload, task.role == call.role ? 1 : 0, Edge::version});
  }

  /// Makes EMA updates of the offloaded replica wait for the offload, which has
  /// the version of its call.
  void ema_update_after(const Call& call, std::uint32_t offload) {
    const auto lag = static_cast<std::int32_t>(graph_.tasks[offload].lag);
    if (workflow_.role(call.role).ema)
      for (auto& task : graph_.tasks)
        if (task.kind == TaskKind::move
            && task.target == graph_.tasks[offload].target)
          add_need(task, {offload, -lag, Edge::write_after_read});
  }

  /// Adds a drop right after the last reader of the version that the step's
  /// move delivered.
  void add_drop(const Replica& shadow, std::uint32_t move) {
    const auto drop = static_cast<std::uint32_t>(graph_.tasks.size());
    graph_.tasks.push_back({.name = "drop " + shadow.name(),
                            .kind = TaskKind::drop,
                            .role = shadow.role,
                            .target = shadow.id,
                            .devices = union_of(shadow.devices, {})});
    for (const auto& name : shadow.calls)
      add_need(graph_.tasks[drop],
               {chunks_of(name).last(), 0, Edge::write_after_read});
    add_need(graph_.tasks[move], {drop, 1, Edge::order});
  }

  std::vector<std::uint32_t> trains_of(const std::string& role) const {
    std::vector<std::uint32_t> trains;
    for (std::uint32_t i = 0; i < workflow_.calls.size(); ++i)
      if (workflow_.calls[i].role == role
          && workflow_.calls[i].kind == CallKind::train)
        trains.push_back(chunks_[i].first);
    return trains;
  }

  /// Orders the role's train calls inside a step, so that readers need the last
  /// one and only the first one waits for readers.
  void add_role(const std::string& role) {
    const auto trains = trains_of(role);
    for (std::size_t i = 1; i < trains.size(); ++i)
      add_need(graph_.tasks[trains[i]], {trains[i - 1], 0, Edge::version});
    first_train_ = trains.front();
    last_train_ = trains.back();
    add_need(graph_.tasks[first_train_], {last_train_, 1, Edge::version});
    for (const auto id : replicas_.of_role(role))
      replicas_[id].home ? add_home(replicas_[id]) : add_shadow(replicas_[id]);
  }

  void add_home(const Replica& home) {
    for (const auto& name : home.calls) {
      if (workflow_.call(name).kind == CallKind::train)
        continue;
      for (const auto& reader : readers_of(name))
        add_reader(reader, last_train_, first_train_);
    }
  }

  /// Adds a reader of weights that change in place, by tasks `first` to `last`
  /// of a step.
  void add_reader(const Chunks& reader, std::uint32_t last,
                  std::uint32_t first) {
    const auto lag = static_cast<std::int32_t>(graph_.tasks[reader.first].lag);
    add_need(graph_.tasks[reader.first], {last, lag + 1, Edge::version});
    add_need(graph_.tasks[first],
             {reader.last(), -lag, Edge::write_after_read});
  }

  void add_shadow(const Replica& shadow) {
    const auto move = static_cast<std::uint32_t>(graph_.tasks.size());
    const auto& home = replicas_[replicas_.home(shadow.role)];
    graph_.tasks.push_back({.name = shadow.name(),
                            .kind = TaskKind::move,
                            .role = shadow.role,
                            .source = home.id,
                            .target = shadow.id,
                            .devices = union_of(home.devices, shadow.devices)});
    auto& task = graph_.tasks[move];
    if (!has_lag(plan_, shadow) && others_come_first(workflow_, plan_, shadow))
      task.right_before = chunks_of(shadow.calls.front()).first;
    add_need(task, {last_train_, 1, Edge::version});
    add_need(task, {move, 1, Edge::order});
    add_need(graph_.tasks[first_train_], {move, 0, Edge::write_after_read});
    for (const auto& name : shadow.calls)
      for (const auto& reader : readers_of(name)) {
        const auto lag
          = static_cast<std::int32_t>(graph_.tasks[reader.first].lag);
        add_need(graph_.tasks[reader.first], {move, lag, Edge::version});
        add_need(graph_.tasks[move],
                 {reader.last(), 1 - lag, Edge::write_after_read});
      }
    if (is_dropped(workflow_, plan_, shadow))
      add_drop(shadow, move);
  }

  /// Adds EMA updates: for the readers of an EMA role they are what training is
  /// for the readers of a home.
  void add_ema_model(const Role& role) {
    const auto& home = replicas_[replicas_.home(role.ema->role)];
    const auto trains = trains_of(home.role);
    for (const auto id : replicas_.of_role(role.name)) {
      const auto& target = replicas_[id];
      const auto ema_update = static_cast<std::uint32_t>(graph_.tasks.size());
      graph_.tasks.push_back({.name = target.name(),
                              .kind = TaskKind::move,
                              .role = role.name,
                              .source = home.id,
                              .target = id,
                              .devices = union_of(home.devices, target.devices),
                              .every = role.ema->every});
      add_need(graph_.tasks[ema_update], {trains.back(), 0, Edge::version});
      add_need(graph_.tasks[ema_update], {ema_update, 1, Edge::order});
      add_need(graph_.tasks[trains.front()],
               {ema_update, 1, Edge::write_after_read});
      for (const auto& name : target.calls)
        for (const auto& reader : readers_of(name))
          add_reader(reader, ema_update, ema_update);
    }
  }

  const Workflow& workflow_;
  const ExecutionPlan& plan_;
  const Replicas& replicas_;
  StepGraph graph_;
  std::vector<Chunks> chunks_; ///< by call
  std::uint32_t first_train_ = 0;
  std::uint32_t last_train_ = 0;
};

/// Checks that every role has one version between two steps: that of a
/// checkpoint.
void check_trainings_keep_step(const StepGraph& graph,
                               const Workflow& workflow) {
  const auto ahead = steps_ahead(graph);
  for (std::size_t i = 0; i < ahead.size(); ++i) {
    const auto& task = graph.tasks[i];
    if (ahead[i] > 0
        && (task.kind == TaskKind::move
            || workflow.call(task.call).kind == CallKind::train))
      throw PlanError(
        {.place = {},
         .path = "lag",
         .expected = "lags with which steps end in their order",
         .got = "a step that waits for " + task.name + " of a later one",
         .hint = "less lag, or the same for the calls it reads from"});
  }
}

} // namespace

StepGraph make_step_graph(const Workflow& workflow, const ExecutionPlan& plan,
                          const Replicas& replicas) {
  auto graph = GraphBuilder(workflow, plan, replicas).build();
  check_graph_finishes(graph);
  check_trainings_keep_step(graph, workflow);
  return graph;
}

} // namespace troupe::plans
