// Random failure scripts: the real master and the real decision to recover,
// with fake engines that answer in random order, until something fails. A
// script is a number; TROUPE_SCRIPTS says how many there are.
#include "actors/master/master_actor.hpp"
#include "plans/presets/presets.hpp"
#include "plans/recovery/recovery.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include "tests/support/actors/simulated_run.hpp"
#include "tests/support/plans/support.hpp"
#include <gmock/gmock.h>

#include <cstdlib>
#include <numeric>
#include <random>

namespace troupe::actors {
namespace {

using ::testing::IsEmpty;

constexpr std::uint32_t num_steps = 5;
constexpr std::uint32_t max_restarts = 3;

/// A reply that a fake owes: delivered in the fake's own handler.
struct Owed {
  std::function<void()> deliver;
  std::function<void(const Failure&)> fail;
  std::function<void(std::uint64_t id, const FailureMessage&)> wake;
};

struct Script : SimulatedRun {
  using SimulatedRun::SimulatedRun;

  template <class Handle, class Done>
  caf::result<Done> owe(const Handle& fake, Reply<Done> reply,
                        std::function<Done()> work) {
    owed[next_id++]
      = {[=]() mutable { reply.deliver(work()); },
         [=](const Failure& failure) mutable { reply.fail(failure); },
         [=](std::uint64_t id, const FailureMessage& message) {
           caf::anon_send(fake, fail_atom::value, id, message);
         }};
    return reply.promise();
  }
  void wake(std::uint64_t id, const FailureMessage& message) {
    auto found = owed.extract(id);
    if (found.empty())
      return;
    if (const auto failure = to_failure(message); failure.code != Errc::ok)
      found.mapped().fail(failure);
    else
      found.mapped().deliver();
  }

  std::map<std::uint64_t, Owed> owed;
  std::uint64_t next_id = 0;
};

CallActor::behavior_type call_fake(Self<CallActor, FakeState> self,
                                   Script* script) {
  return {[=](run_atom, const Context& context, const CallTask& task) {
            script->begin_call(context.step, task);
            return script->owe<CallActor, CallDone>(
              CallActor{self}, {self, context}, [=, step = context.step] {
                return script->end_call(step, task);
              });
          },
          [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
            script->wake(id, message);
          }};
}

MoveActor::behavior_type move_fake(Self<MoveActor, FakeState> self,
                                   Script* script, ReplicaId source,
                                   ReplicaId target) {
  return {[=](run_atom, const Context& context, const MoveTask& task) {
            script->begin_move(source, task);
            return script->owe<MoveActor, MoveDone>(
              MoveActor{self}, {self, context}, [=] {
                script->end_move(source, target, task);
                return MoveDone{};
              });
          },
          [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
            script->wake(id, message);
          }};
}

ResidencyActor::behavior_type
residency_fake(Self<ResidencyActor, FakeState> self, Script* script) {
  return {[=](run_atom, const Context& context, const ResidencyOrder&) {
            return script->owe<ResidencyActor, ResidencyDone>(
              ResidencyActor{self}, {self, context},
              [] { return ResidencyDone{}; });
          },
          [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
            script->wake(id, message);
          }};
}

CheckpointActor::behavior_type save_fake(Self<CheckpointActor, FakeState> self,
                                         Script* script) {
  return {[=](save_atom, const Context& context, const SaveTask& task) {
            script->begin_copy(task);
            return script->owe<CheckpointActor, SaveCopied>(
              CheckpointActor{self}, {self, context}, [=] {
                script->end_copy(task);
                return SaveCopied{};
              });
          },
          [=](write_atom, const Context& context, const WriteTask&) {
            return script->owe<CheckpointActor, SaveDone>(
              CheckpointActor{self}, {self, context}, [=] {
                script->end_write();
                return SaveDone{.folder = "checkpoint"};
              });
          },
          [](done_atom, std::uint64_t) {},
          [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
            script->wake(id, message);
          }};
}

Failure loss_of(std::uint32_t worker) {
  return {.code = Errc::peer_lost,
          .who = "worker " + std::to_string(worker),
          .what = "killed by signal 9",
          .cause = ""};
}

const std::vector<std::string> script_presets{
  "single",   "data_parallel",  "interleaving", "separation", "async",
  "openrlhf", "deepspeed_chat", "verl",         "megatron",   "real_heuristic"};

/// Returns PPO or GRPO by a preset that fits four devices.
Dataflow random_dataflow(std::mt19937_64& random) {
  Dataflow dataflow;
  dataflow.workflow
    = random() % 3 == 0 ? plans::make_grpo() : plans::make_ppo();
  dataflow.plan = plans::preset("single", dataflow.workflow, {});
  try {
    dataflow.plan
      = plans::preset(script_presets[random() % script_presets.size()],
                      dataflow.workflow, {.devices_per_node = 4});
  } catch (const PlanError&) { // does not fit: a single device
  }
  dataflow.replicas = plans::replicas_of(dataflow.workflow, dataflow.plan);
  dataflow.graph = plans::make_step_graph(dataflow.workflow, dataflow.plan,
                                          dataflow.replicas);
  return dataflow;
}

/// Outcome of a script.
struct Outcome {
  std::vector<std::string> errors;
  std::map<std::string, SimulatedWeights> weights; ///< by role that trains
};

/// Counts over all scripts, lest these go through little.
struct Coverage {
  std::uint64_t attempts = 0;
  std::uint64_t recoveries = 0;
  std::uint64_t given_up = 0;
};

class FailureScripts : public DrivenActors {
protected:
  /// Plays script `number`, or its run without any failure.
  Outcome play(std::uint64_t number, bool disturbed);

  Coverage coverage_;

private:
  void begin(Script& script, const Dataflow& dataflow);
  void run_attempt(Script& script);
  void end_attempt(Script& script);
  bool advance(Script& script);
  void wake_one(Script& script, const FailureMessage& message);
  void disturb(Script& script);
  void after_failure(Script& script, bool started);
  Outcome outcome_of(const Script& script, const Dataflow& dataflow) const;

  std::mt19937_64 random_;
  std::uint64_t failures_left_ = 0;
  std::uint32_t attempt_ = 0;
  std::uint32_t save_every_ = 1;
  std::uint32_t lost_worker_ = 0;
  std::vector<std::uint32_t> metrics_; ///< lines of metrics.jsonl
  std::vector<plans::FailedAttempt> failed_;
  MasterActor master_;
  std::optional<RunEnd> end_;
};

/// Starts a master and its fakes from the newest checkpoint.
void FailureScripts::begin(Script& script, const Dataflow& dataflow) {
  MasterSetup setup;
  setup.dataflow = dataflow;
  setup.start = script.begin(Incarnation{++attempt_});
  ++coverage_.attempts;
  const auto first = setup.start.first_step.value;
  if (metrics_.size() < first)
    script.errors.push_back("a checkpoint is newer than the metrics");
  metrics_.resize(std::min<std::size_t>(metrics_.size(), first));
  setup.end_step = StepId{num_steps};
  setup.rows.actor = spawn(fake_data, std::vector<std::uint32_t>{4, 5, 6, 7});
  for (const auto& call : dataflow.workflow.calls)
    setup.actors.calls[call.name] = spawn(call_fake, &script);
  for (const auto& task : dataflow.graph.tasks)
    if (task.kind == plans::TaskKind::move)
      setup.actors.moves[{*task.source, *task.target}]
        = spawn(move_fake, &script, *task.source, *task.target);
  for (const auto& replica : dataflow.replicas.all)
    setup.actors.residencies[replica.id] = spawn(residency_fake, &script);
  setup.save = {.actor = spawn(save_fake, &script),
                .every = save_every_,
                .replicas = script.saved_replicas()};
  setup.asks = asks_ = std::make_shared<AskTable>();
  setup.callbacks.on_step = [this](const StepReport& report) {
    metrics_.push_back(report.step.value);
  };
  setup.callbacks.on_end = [this](const RunEnd& end) { end_ = end; };
  end_.reset();
  master_ = spawn(master_actor, std::move(setup));
  tell(master_, start_atom::value);
}

void FailureScripts::end_attempt(Script& script) {
  master_ = MasterActor{};
  for (const auto& actor : std::exchange(ours_, {}))
    caf::anon_send_exit(actor, caf::exit_reason::kill);
  run();
  script.owed.clear();
}

void FailureScripts::wake_one(Script& script, const FailureMessage& message) {
  auto at = script.owed.begin();
  std::advance(at, random_() % script.owed.size());
  const auto wake = at->second.wake;
  wake(at->first, message);
  run();
}

/// Delivers one reply; returns false if none is owed.
bool FailureScripts::advance(Script& script) {
  if (script.owed.empty())
    return false;
  wake_one(script, FailureMessage{});
  return true;
}

/// Loses a worker: the master hears it from the heartbeats, from calls that
/// fail, or from both.
void FailureScripts::disturb(Script& script) {
  lost_worker_ = static_cast<std::uint32_t>(random_() % 4);
  const auto message = to_failure_message(loss_of(lost_worker_));
  const auto how = random_() % 3;
  if (how == 0 || script.owed.empty())
    tell(master_, down_atom::value, message);
  for (auto calls = random_() % 3; how > 0 && calls > 0; --calls)
    if (!script.owed.empty())
      wake_one(script, message);
  if (!end_)
    tell(master_, down_atom::value, message);
}

/// Decides as the session does; a run that gave up is started again by its
/// user.
void FailureScripts::after_failure(Script& script, bool started) {
  const auto saved = script.disk ? script.disk->next_step : StepId{0};
  failed_.push_back({.failure = loss_of(lost_worker_),
                     .worker = WorkerId{lost_worker_},
                     .step = started ? end_->next_step : saved,
                     .saved = saved,
                     .started = started,
                     .killed = true});
  const auto decision
    = plans::decide_recovery(failed_, {.max_restarts = max_restarts});
  if (!decision.recovers && decision.reason.empty())
    script.errors.emplace_back("it gave up without a reason");
  ++(decision.recovers ? coverage_.recoveries : coverage_.given_up);
  if (!decision.recovers)
    failed_.clear();
}

/// Runs until the master ends, or is killed.
void FailureScripts::run_attempt(Script& script) {
  auto patience = random_() % 60; // replies until the next failure
  while (!end_) {
    if (failures_left_ > 0 && patience-- == 0) {
      --failures_left_;
      const auto kind = random_() % 6;
      if (kind == 0)
        return; // the master is killed
      if (kind == 1)
        tell(master_, stop_atom::value);
      else
        disturb(script);
    } else if (!advance(script)) {
      script.errors.emplace_back("dead-lock: nothing is owed, nothing ends");
      return;
    }
  }
}

Outcome FailureScripts::outcome_of(const Script& script,
                                   const Dataflow& dataflow) const {
  Outcome outcome{.errors = script.errors, .weights = {}};
  if (!outcome.errors.empty())
    return outcome;
  std::vector<std::uint32_t> every(num_steps);
  std::iota(every.begin(), every.end(), 0);
  if (metrics_ != every)
    outcome.errors.emplace_back("steps were lost or reported twice");
  for (const auto& [id, weights] : script.disk->weights)
    if (dataflow.replicas[id].home)
      outcome.weights[dataflow.replicas[id].role] = weights;
  return outcome;
}

Outcome FailureScripts::play(std::uint64_t number, bool disturbed) {
  random_.seed(number);
  attempt_ = 0;
  metrics_.clear();
  failed_.clear();
  const auto failures = random_() % 8;
  failures_left_ = disturbed ? failures : 0;
  save_every_ = static_cast<std::uint32_t>(random_() % 4); // 0: at the end
  const auto dataflow = random_dataflow(random_);
  Script script(dataflow);
  do {
    if (failures_left_ > 0 && random_() % 10 == 0) {
      --failures_left_; // a worker is killed before all have loaded
      after_failure(script, false);
    }
    begin(script, dataflow);
    run_attempt(script);
    end_attempt(script);
    if (!end_) // its user gives the command again
      failed_.clear();
    else if (end_->kind == RunEnd::Kind::failed)
      after_failure(script, true);
  } while (script.errors.empty()
           && !(end_ && end_->kind == RunEnd::Kind::done));
  return outcome_of(script, dataflow);
}

TEST_F(FailureScripts, NoneLosesAStepOrTrainsItTwiceOrEndsInADeadlockI5) {
  const char* wanted = std::getenv("TROUPE_SCRIPTS");
  const auto scripts = wanted != nullptr ? std::stoull(wanted) : 1000;
  for (std::uint64_t number = 0; number < scripts; ++number) {
    const auto undisturbed = play(number, false);
    const auto outcome = play(number, true);
    ASSERT_THAT(undisturbed.errors, IsEmpty()) << "script " << number;
    ASSERT_THAT(outcome.errors, IsEmpty()) << "script " << number;
    ASSERT_EQ(outcome.weights, undisturbed.weights) << "script " << number;
  }
  EXPECT_GT(coverage_.attempts, 3 * scripts);
  EXPECT_GT(coverage_.recoveries, scripts / 2);
  EXPECT_GT(coverage_.given_up, scripts / 100);
}

} // namespace
} // namespace troupe::actors
