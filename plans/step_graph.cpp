#include "plans/step_graph.hpp"

#include "config/error.hpp"
#include "plans/task_tracker.hpp"

#include <fmt/format.h>

#include <iterator>

namespace troupe::plans {

namespace {

void add_need(TaskTemplate& task, const Need& need) {
  const auto same = [&](const Need& n) {
    return n.task == need.task && n.steps_back == need.steps_back;
  };
  if (std::ranges::none_of(task.needs, same))
    task.needs.push_back(need);
}

std::vector<Rank> union_of(const std::vector<Rank>& a,
                           const std::vector<Rank>& b) {
  std::vector<Rank> both;
  std::ranges::set_union(a, b, std::back_inserter(both));
  return both;
}

/// Builds the templates; indices of calls in workflow and graph agree.
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
        add_need(graph_.tasks[i], {producer, 0, Edge::data});
      add_need(graph_.tasks[i], {i, 1, Edge::order});
    }
    for (const auto& role : workflow_.roles)
      if (role.trained)
        add_role(role.name);
    return std::move(graph_);
  }

private:
  /// Functions without a placement run on the host.
  void add_call(const Call& call) {
    const auto placement = plan_.calls.find(call.name);
    const bool placed = placement != plan_.calls.end();
    TROUPE_CHECK(placed || call.kind == CallKind::function,
                 fmt::format("call '{}' has no placement", call.name));
    const auto lag = plan_.lag_of(call.name);
    graph_.tasks.push_back(
      {.name = call.name,
       .call = call.name,
       .role = call.role,
       .devices = placed ? placement->second.devices : std::vector<Rank>{},
       .lag = lag});
    graph_.max_lag = std::max(graph_.max_lag, lag);
  }

  std::uint32_t index(const std::string& call) const {
    return static_cast<std::uint32_t>(&workflow_.call(call)
                                      - workflow_.calls.data());
  }

  /// The role's train calls follow each other inside a step, so that readers
  /// need the last one and only the first one waits for readers.
  void add_role(const std::string& role) {
    std::vector<std::uint32_t> trains;
    for (std::uint32_t i = 0; i < workflow_.calls.size(); ++i)
      if (workflow_.calls[i].role == role
          && workflow_.calls[i].kind == CallKind::train)
        trains.push_back(i);
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
      const auto reader = index(name);
      if (workflow_.calls[reader].kind == CallKind::train)
        continue;
      const auto lag = static_cast<std::int32_t>(graph_.tasks[reader].lag);
      add_need(graph_.tasks[reader], {last_train_, lag + 1, Edge::version});
      add_need(graph_.tasks[first_train_],
               {reader, -lag, Edge::write_after_read});
    }
  }

  void add_shadow(const Replica& shadow) {
    const auto move = static_cast<std::uint32_t>(graph_.tasks.size());
    const auto& home = replicas_[replicas_.home(shadow.role)];
    auto least = graph_.tasks[index(shadow.calls.front())].lag;
    for (const auto& name : shadow.calls)
      least = std::min(least, graph_.tasks[index(name)].lag);
    graph_.tasks.push_back({.name = shadow.name(),
                            .kind = TaskKind::move,
                            .role = shadow.role,
                            .source = home.id,
                            .target = shadow.id,
                            .devices = union_of(home.devices, shadow.devices),
                            .lag = least});
    const auto move_lag = static_cast<std::int32_t>(least);
    auto& task = graph_.tasks[move];
    add_need(task, {last_train_, move_lag + 1, Edge::version});
    add_need(task, {move, 1, Edge::order});
    add_need(graph_.tasks[first_train_],
             {move, -move_lag, Edge::write_after_read});
    for (const auto& name : shadow.calls) {
      const auto reader = index(name);
      const auto ahead
        = static_cast<std::int32_t>(graph_.tasks[reader].lag) - move_lag;
      add_need(graph_.tasks[reader], {move, ahead, Edge::version});
      add_need(task, {reader, 1 - ahead, Edge::write_after_read});
    }
  }

  const Workflow& workflow_;
  const ExecutionPlan& plan_;
  const Replicas& replicas_;
  StepGraph graph_;
  std::uint32_t first_train_ = 0;
  std::uint32_t last_train_ = 0;
};

} // namespace

std::string_view to_string(Edge edge) {
  switch (edge) {
  case Edge::data:
    return "data";
  case Edge::version:
    return "version";
  case Edge::write_after_read:
    return "write after read";
  case Edge::order:
    return "order";
  }
  return "?";
}

std::uint32_t StepGraph::index_of(std::string_view task) const {
  const auto found = std::ranges::find(tasks, task, &TaskTemplate::name);
  TROUPE_CHECK(found != tasks.end(), fmt::format("no task '{}'", task));
  return static_cast<std::uint32_t>(found - tasks.begin());
}

StepGraph make_step_graph(const Workflow& workflow, const ExecutionPlan& plan,
                          const Replicas& replicas) {
  auto graph = GraphBuilder(workflow, plan, replicas).build();
  check_graph_finishes(graph);
  return graph;
}

} // namespace troupe::plans
