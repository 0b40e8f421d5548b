// Random workflows and plans on fake devices with random durations: in any
// order of events, versions (I4), rows (I6) and device orders (I8) are right,
// and the schedule never stalls (I7).
#include "config/base/error.hpp"
#include "plans/schedule/joined_chunks.hpp"
#include "plans/schedule/schedule.hpp"
#include "plans/weights/residency.hpp"

#include <gtest/gtest.h>

#include "tests/support/plans/random_plan.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace troupe::plans {
namespace {

/// Runs a schedule on fake devices and checks every start and end.
class World {
public:
  World(const Workflow& workflow, const ExecutionPlan& plan, StepGraph graph,
        std::uint32_t steps, std::uint64_t seed)
    : workflow_(workflow),
      plan_(plan),
      replicas_(replicas_of(workflow, plan)),
      ahead_(steps_ahead(graph)),
      end_(steps),
      schedule_(std::move(graph), StepId{0}, StepId{steps}),
      random_(seed),
      versions_(replicas_.all.size(), 0),
      readers_(replicas_.all.size(), 0),
      written_(replicas_.all.size(), false),
      dropped_(replicas_.all.size(), false),
      users_(replicas_.all.size(), 0) {}

  void run() {
    begin(schedule_.start());
    while (!running_.empty()) {
      const auto [end, task] = *running_.begin();
      running_.erase(running_.begin());
      now_ = end.first;
      finish(task);
    }
    ASSERT_TRUE(schedule_.all_done()) << "deadlock";
    for (const auto task : done_)
      EXPECT_LT(task.step.value, end_ + ahead_[task.task]) << "nobody waits";
  }
  /// Tasks of each device in the order in which they ran.
  std::map<Rank, std::vector<TaskRef>> history;
  int come_and_go = 0;   ///< reloads, offloads and drops
  int blends = 0;        ///< of EMA models
  int joined = 0;        ///< tasks that others joined
  int came_early = 0;    ///< reloads before the rows of their call
  int awaited_moves = 0; ///< read by their readers first, by device

private:
  using End = std::pair<double, std::uint64_t>;
  struct Access {
    std::optional<std::uint32_t> reads, writes; ///< replicas
  };

  const TaskTemplate& shape(TaskRef task) const {
    return schedule_.graph().tasks[task.task];
  }
  bool is_train(TaskRef task) const {
    return shape(task).kind == TaskKind::call
           && workflow_.call(shape(task).call).kind == CallKind::train;
  }
  std::vector<std::uint32_t> producers_of(TaskRef task) const {
    if (shape(task).kind != TaskKind::call)
      return {};
    std::vector<std::uint32_t> tasks;
    for (const auto call : producers(workflow_, call_index(task)))
      append_chunks(workflow_.calls[call].name, shape(task), tasks);
    if (shape(task).part.slice.index > 0)
      tasks.push_back(task.task - 1);
    return tasks;
  }
  std::size_t call_index(TaskRef task) const {
    return static_cast<std::size_t>(&workflow_.call(shape(task).call)
                                    - workflow_.calls.data());
  }
  /// Returns the writer's chunks that share samples with `reader`; of a writer
  /// in slices the last one, and what a later slice continues.
  void append_chunks(const std::string& writer, const TaskTemplate& reader,
                     std::vector<std::uint32_t>& tasks) const {
    const auto& all = schedule_.graph().tasks;
    for (std::uint32_t i = 0; i < all.size(); ++i)
      if (all[i].call == writer && all[i].part.slice.is_last()
          && all[i].kind == TaskKind::call
          && all[i].part.chunk * reader.part.chunks
               < (reader.part.chunk + 1) * all[i].part.chunks
          && reader.part.chunk * all[i].part.chunks
               < (all[i].part.chunk + 1) * reader.part.chunks)
        tasks.push_back(i);
  }
  Access access(TaskRef task) const {
    const auto& t = shape(task);
    if (t.kind == TaskKind::move)
      return {t.source->value, t.target->value};
    if (t.role.empty() || t.kind != TaskKind::call)
      return {};
    const auto replica = replicas_.of_call(t.call).value;
    return is_train(task) ? Access{{}, replica} : Access{replica, {}};
  }

  void begin(const std::vector<TaskRef>& tasks) {
    std::uint64_t position = 0;
    for (const auto task : tasks) {
      EXPECT_LE(position, schedule_.position(task)) << "not in total order";
      position = schedule_.position(task);
      begin(task);
    }
  }

  void begin(TaskRef task) {
    const auto& t = shape(task);
    EXPECT_GE(task.step, schedule_.oldest_step()) << "its rows are freed";
    EXPECT_LE(task.step.value,
              schedule_.oldest_step().value + schedule_.graph().max_lag);
    for (const auto rank : t.devices) {
      EXPECT_TRUE(busy_.insert(rank).second) << "two tasks on a device";
      auto& past = history[rank];
      EXPECT_TRUE(past.empty()
                  || last_position_[rank] < schedule_.position(task))
        << "against the total order";
      EXPECT_TRUE(past.empty() || may_follow(past.back(), task))
        << t.name << " finds planes that came for another";
      check_awaited(rank, task);
      last_position_[rank] = schedule_.position(task);
      past.push_back(task);
    }
    came_early += t.kind == TaskKind::reload && waits_for_rows(task);
    for (const auto producer : producers_of(task))
      EXPECT_TRUE(done_.contains({producer, task.step})) << "no rows yet";
    check_versions(task);
    check_presence(task);
    note_joined(task);
    const double takes = 0.1 + double(random_() % 1000) / 100;
    running_.emplace(End{now_ + takes, started_++}, task);
  }

  /// Checks that loaded planes are followed by their call.
  bool may_follow(TaskRef before, TaskRef task) const {
    return shape(before).kind != TaskKind::reload
           || (shape(task).kind == TaskKind::call && before.step == task.step
               && shape(task).call == shape(before).call);
  }

  /// Checks that the readers of moved weights are the first to find them on a
  /// device.
  void check_awaited(Rank rank, TaskRef task) {
    const auto& t = shape(task);
    auto& awaited = awaited_[rank];
    if (t.kind == TaskKind::move && !is_ema_update(task)) {
      const auto& target = replicas_[*t.target];
      if (std::ranges::count(target.devices, rank) == 0)
        return; // others may take weights from here
      EXPECT_FALSE(awaited) << t.name << " beside what came for another";
      if (!has_lag(plan_, target))
        awaited = target.id;
      return;
    }
    if (t.kind != TaskKind::call || !awaited)
      return;
    EXPECT_GT(std::ranges::count(replicas_[*awaited].calls, t.call), 0)
      << t.name << " finds what a move brought for another";
    awaited.reset();
    ++awaited_moves;
  }

  /// Returns true if rows are missing for the call whose planes are loaded.
  bool waits_for_rows(TaskRef task) const {
    TaskRef call = task;
    call.task = schedule_.graph().index_of(first_task_of(shape(task).call));
    return std::ranges::any_of(producers_of(call), [&](std::uint32_t one) {
      return !done_.contains({one, task.step});
    });
  }
  std::string first_task_of(const std::string& call) const {
    return plan_.calls.at(call).chunks == 1 ? call : call + "[0]";
  }

  /// Acts as if the call generated: tasks that join start directly after it.
  void note_joined(TaskRef task) {
    const auto& t = shape(task);
    if (t.kind != TaskKind::call)
      return;
    auto call = workflow_.call(t.call);
    call.kind = CallKind::generate;
    const auto batch
      = joined_chunks(schedule_.graph(), call, task, schedule_.followers(task));
    for (std::size_t i = 1; i < batch.size(); ++i)
      behind_[batch[i - 1]] = batch[i];
    joined += batch.size() > 1;
  }

  void check_versions(TaskRef task) { // I4
    const auto& t = shape(task);
    if (!t.role.empty() && !workflow_.role(t.role).changes())
      return;
    const auto [reads, writes] = access(task);
    auto wanted = t.role.empty() ? 0 : version_of(t.role, task.step, t.lag);
    if (is_ema_update(task)) {
      EXPECT_EQ(versions_[*writes], wanted) << t.name << " left one out";
      wanted = task.step.value + 1;
    }
    if (reads) {
      EXPECT_EQ(versions_[*reads], wanted) << t.name;
      EXPECT_FALSE(written_[*reads]) << t.name << " reads what changes";
      ++readers_[*reads];
    }
    if (writes) {
      EXPECT_EQ(readers_[*writes], 0) << t.name << " overwrites what is read";
      EXPECT_FALSE(written_[*writes]) << t.name;
      if (t.kind == TaskKind::call) {
        EXPECT_EQ(versions_[*writes], task.step.value) << t.name;
      }
      written_[*writes] = true;
    }
  }

  bool is_ema_update(TaskRef task) const {
    return shape(task).kind == TaskKind::move
           && workflow_.role(shape(task).role).ema;
  }
  std::uint32_t version_of(const std::string& role, StepId step,
                           std::uint32_t lag) const {
    return version_for(workflow_.role(role), step, lag).value;
  }

  /// Checks that work which cannot be repeated after a step is done before the
  /// end of the step (I8).
  void check_moment_between_steps() {
    const auto next = std::min(schedule_.oldest_step().value, end_);
    for (std::uint32_t i = 0; next > 0 && i < ahead_.size(); ++i)
      for (auto step = next; step < next + ahead_[i]; ++step)
        EXPECT_TRUE(done_.contains({i, StepId{step}}))
          << shape({i, StepId{step}}).name << " of step " << step;
  }

  /// Checks that calls have the planes that they need on the device.
  void check_presence(TaskRef task) {
    const auto& t = shape(task);
    if (t.kind == TaskKind::drop) {
      EXPECT_EQ(readers_[t.target->value], 0) << t.name << " is still read";
      EXPECT_FALSE(written_[t.target->value]) << t.name;
    }
    if (t.kind == TaskKind::offload) {
      EXPECT_GT(users_[t.target->value], 0) << t.name;
    }
    if (t.kind != TaskKind::call || t.role.empty())
      return;
    const auto replica = replicas_.of_call(t.call).value;
    EXPECT_FALSE(dropped_[replica]) << t.name << " runs on what was dropped";
    if (comes_and_goes(workflow_, plan_, replicas_, workflow_.call(t.call))) {
      EXPECT_GT(users_[replica], 0) << t.name << " has no weights";
    }
  }

  void note_presence(const TaskTemplate& t) {
    if (t.kind == TaskKind::drop || t.kind == TaskKind::move)
      dropped_[t.target->value] = t.kind == TaskKind::drop;
    if (t.kind == TaskKind::reload)
      ++users_[t.target->value];
    if (t.kind == TaskKind::offload)
      --users_[t.target->value];
    come_and_go += t.kind != TaskKind::call && t.kind != TaskKind::move;
  }

  bool is_last_train(TaskRef task) const {
    const auto& calls = workflow_.calls;
    if (!is_train(task))
      return false;
    for (auto i = call_index(task) + 1; i < calls.size(); ++i)
      if (calls[i].role == shape(task).role && calls[i].kind == CallKind::train)
        return false;
    return true;
  }

  void finish(TaskRef task) {
    const auto& t = shape(task);
    note_presence(t);
    const auto [reads, writes] = access(task);
    const bool changes = !t.role.empty() && workflow_.role(t.role).changes();
    if (changes && reads)
      --readers_[*reads];
    if (changes && writes) {
      written_[*writes] = false;
      blends += is_ema_update(task);
      if (t.kind == TaskKind::move)
        versions_[*writes] = version_of(
          t.role, StepId{task.step.value + (is_ema_update(task) ? 1 : 0)},
          t.lag);
      else if (is_last_train(task))
        versions_[*writes] = task.step.value + 1;
    }
    for (const auto rank : t.devices)
      busy_.erase(rank);
    done_.insert(task);
    const auto ready = schedule_.finished(task);
    if (const auto next = behind_.find(task); next != behind_.end()) {
      EXPECT_GT(std::ranges::count(ready, next->second), 0)
        << t.name << " ended, what joined it does not start";
    }
    check_moment_between_steps();
    begin(ready);
  }

  const Workflow& workflow_;
  const ExecutionPlan& plan_;
  Replicas replicas_;
  std::vector<std::uint32_t> ahead_; ///< by task
  std::uint32_t end_;
  Schedule schedule_;
  Random random_;
  std::vector<std::uint32_t> versions_; ///< by replica
  std::vector<int> readers_;
  std::vector<bool> written_;
  std::vector<bool> dropped_;
  std::vector<int> users_; ///< calls that need planes now
  std::map<End, TaskRef> running_;
  std::set<Rank> busy_;
  std::set<TaskRef> done_;
  std::map<TaskRef, TaskRef> behind_; ///< the chunk that joined a task
  std::map<Rank, std::uint64_t> last_position_;
  std::map<Rank, std::optional<ReplicaId>> awaited_; ///< not yet read
  double now_ = 0;
  std::uint64_t started_ = 0;
};

TEST(ScheduleProperty, RandomPlansNeverStallOrMixVersions) {
  int ran = 0, lagged = 0, refused = 0, chunked = 0, lived = 0;
  int followed = 0, joined = 0, early = 0, awaited = 0, sliced = 0;
  for (std::uint64_t seed = 0; ran < 1500; ++seed) {
    Random random(seed);
    const auto workflow = random_workflow(random);
    const auto plan = random_plan(workflow, random);
    StepGraph graph;
    try {
      graph = make_step_graph(workflow, plan, replicas_of(workflow, plan));
    } catch (const PlanError&) {
      EXPECT_TRUE(plan.lags()) << "refused without a lag, seed " << seed;
      ++refused;
      continue;
    }
    World fast(workflow, plan, graph, 7, seed);
    World slow(workflow, plan, graph, 7, seed + 1'000'000);
    ASSERT_NO_FATAL_FAILURE(fast.run()) << "seed " << seed;
    ASSERT_NO_FATAL_FAILURE(slow.run()) << "seed " << seed;
    EXPECT_EQ(fast.history, slow.history) << "I8, seed " << seed;
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    ++ran;
    lived += fast.come_and_go > 0;
    followed += fast.blends > 0;
    joined += fast.joined > 0;
    early += fast.came_early > 0;
    awaited += fast.awaited_moves > 0;
    lagged += graph.max_lag > 0;
    sliced += std::ranges::any_of(graph.tasks, [](const TaskTemplate& task) {
      return task.part.slice.is_cut();
    });
    chunked += std::ranges::any_of(graph.tasks, [](const TaskTemplate& task) {
      return task.part.chunks > 1;
    });
  }
  RecordProperty("refused", refused);
  EXPECT_GT(lived, 300);
  EXPECT_GT(followed, 150);
  EXPECT_GT(lagged, 300);
  EXPECT_GT(chunked, 300);
  EXPECT_GT(sliced, 300);
  EXPECT_GT(joined, 100);
  EXPECT_GT(early, 300);
  EXPECT_GT(awaited, 300);
}

} // namespace
} // namespace troupe::plans
