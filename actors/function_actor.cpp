#include "actors/function_actor.hpp"

#include "actors/call_options.hpp"
#include "actors/own_work.hpp"
#include "actors/recording.hpp"
#include "actors/reward_work.hpp"
#include "actors/shard_work.hpp"
#include "models/evaluation.hpp"
#include "models/functions.hpp"
#include "models/rollout_record.hpp"
#include "models/row_lines.hpp"

#include <fmt/format.h>

#include <string_view>

namespace troupe::actors {

namespace {

using FunctionSelf = Self<FunctionActor, FunctionState>;

/// Functions that write rows to a file of the run folder instead of making new
/// ones: samples.jsonl, and the rows of verbs.
using RowWriter = void (*)(WorkerContext&, StepId, const net::Rows&);

void record(WorkerContext& worker, StepId step, const net::Rows& rows) {
  models::append_samples(worker.run_folder / "samples.jsonl", step, rows,
                         sample_keys(worker.workflow), worker.tokenizer());
}

/// Where the batch of `step` begins in the data file, which verbs read once
/// from its start to its end.
models::LineSource line_source(WorkerContext& worker, StepId step) {
  const Settings& settings = worker.settings;
  const bool prompts = worker.workflow.samples_are_prompts;
  return {.data = worker.dataset(),
          .tokenizer = worker.tokenizer(),
          .first_row
          = step.value * static_cast<std::uint32_t>(settings.data.batch_size),
          .samples_per_row
          = prompts ? static_cast<std::uint32_t>(settings.rollout.n) : 1};
}

void write_answers(WorkerContext& worker, StepId step, const net::Rows& rows) {
  models::append_text(worker.run_folder / verb_rows_file,
                      models::answer_lines(line_source(worker, step), rows));
}

void write_scores(WorkerContext& worker, StepId step, const net::Rows& rows) {
  models::append_text(worker.run_folder / verb_rows_file,
                      models::score_lines(line_source(worker, step), rows));
}

RowWriter writer_of(std::string_view fn) {
  if (fn == record_fn)
    return record;
  if (fn == "write_answers")
    return write_answers;
  return fn == "write_scores" ? write_scores : nullptr;
}

models::CarriedValues carried_of(const RunOrder& order) {
  models::CarriedValues values;
  for (const auto& carried : order.carried)
    values[carried.name] = carried.value.number();
  return values;
}

/// `track` is that of the thread, which is in the call's slice.
RunDone keep_result(WorkerContext& worker, StepId step, const plans::Call& call,
                    models::FunctionResult result, trace::Track track) {
  auto rows
    = net::select_keys(rename_out(call, std::move(result.rows)), call.writes);
  trace_rows(track, "writes", step, rows);
  RunDone done = stash_outputs(worker, step, call, std::move(rows));
  if (!call.greedy) // or they would stand under the sampled answers' names
    done.sums = to_parts(result.sums);
  for (const auto& [name, value] : result.carried)
    done.carried.push_back({name, Bits{value}});
  return done;
}

RunDone run_registered(WorkerContext& worker, StepId step,
                       const RunOrder& order, const plans::Call& call,
                       const net::Rows& rows) {
  const models::FunctionContext context{
    .settings = worker.settings, .step = step, .carried = carried_of(order)};
  return keep_result(
    worker, step, call,
    models::run_function(call.fn, rename_in(call, rows), context),
    worker.host->track());
}

/// The end of an evaluation: a file of its rows, and its metrics.
RunDone run_evaluator(WorkerContext& worker, StepId step,
                      models::Evaluator evaluator, const net::Rows& rows) {
  const auto result = evaluator(
    {.data = worker.evaluation(),
     .tokenizer = worker.tokenizer(),
     .step = step,
     .samples_per_row = samples_per_row(worker.settings, worker.workflow,
                                        /*evaluates=*/true),
     .pass_at = worker.settings.eval.pass_at,
     .beta = worker.settings.algorithm.beta},
    rows);
  models::write_file_whole(evaluation_file(worker.run_folder, step),
                           result.lines);
  RunDone done;
  done.holder = worker.worker;
  done.sums = to_parts(result.sums);
  return done;
}

RunDone run_here(WorkerContext& worker, StepId step, const RunOrder& order,
                 const net::Rows& rows) {
  const plans::Call& call = worker.workflow.call(order.call);
  const trace::Span span{worker.host->track(), trace::name(call.name),
                         step.value};
  trace_rows(worker.host->track(), "reads", step, rows);
  const auto begin = now_ns();
  RunDone done;
  if (const auto writer = writer_of(call.fn)) {
    writer(worker, step, rows);
    done.holder = worker.worker;
  } else if (const auto evaluator = models::find_evaluator(call.fn)) {
    done = run_evaluator(worker, step, evaluator, rows);
  } else {
    done = run_registered(worker, step, order, call, rows);
  }
  done.begin_ns = begin;
  done.busy_ns = now_ns() - begin;
  return done;
}

using OnRunDone = std::function<void(Result<RunDone>)>;

/// The scorer, which may be at it already, says when the scores are there.
void run_rewards(const std::shared_ptr<WorkerContext>& worker, StepId step,
                 const plans::Call& call, const net::Rows& rows,
                 const std::string& who, const OnRunDone& callback) {
  worker->rewards->run(call, step, rename_in(call, rows),
                       [=, &call, begin = now_ns()](const GetRewards& rewards) {
                         callback(result_of<RunDone>(who, [&] {
                           auto done
                             = keep_result(*worker, step, call, rewards(),
                                           worker->rewards->track());
                           done.begin_ns = begin;
                           done.busy_ns = now_ns() - begin;
                           return done;
                         }));
                       });
}

/// One call of an own program on this worker.
struct OwnTask {
  std::shared_ptr<WorkerContext> worker;
  const plans::Call* call = nullptr; ///< its keys may be an evaluation's
  const OwnEntry* own = nullptr;
  StepId step;
  std::shared_ptr<net::Rows> rows;
  models::CarriedValues carried; ///< as the step before left them
  std::uint64_t begin_ns = now_ns();

  std::string who() const {
    return who_of(*worker, *own, step);
  }
};

RunDone end_own(const OwnTask& task, const std::vector<Sample>& samples) {
  auto done
    = keep_own_outputs(*task.worker, task.step, *task.call, *task.own, samples);
  done.begin_ns = task.begin_ns;
  done.busy_ns = now_ns() - task.begin_ns;
  return done;
}

RunDone run_own_here(const OwnTask& task) {
  WorkerContext& worker = *task.worker;
  const trace::Span span{worker.host->track(), trace::name(task.call->name),
                         task.step.value};
  trace_rows(worker.host->track(), "reads", task.step, *task.rows);
  if (!task.own->metrics.empty()) {
    RunDone done;
    done.holder = worker.worker;
    done.sums = to_parts(own_metric_sums(*task.own, *task.rows));
    return done;
  }
  auto samples = own_samples(worker, task.step, *task.own, *task.rows);
  auto carried = task.carried;
  run_own_function(worker, *task.own, samples, carried);
  RunDone done = end_own(task, samples);
  for (const auto& value : task.own->call.carried_out)
    done.carried.push_back({value.name, Bits{carried.at(value.name)}});
  return done;
}

/// Rows to samples on the host thread, through the actor, and back. The call
/// has a row of its own in the trace, as the host does other work meanwhile.
void run_own_actor(const OwnTask& task, const OnRunDone& callback) {
  const auto track = trace::track(task.call->name, trace::TrackKind::device);
  const auto name = trace::name(task.call->name);
  trace::begin(track, name, task.step.value);
  auto on_samples = [=](std::variant<std::vector<Sample>, Failure> result) {
    trace::end(track, name);
    if (auto* failure = std::get_if<Failure>(&result))
      return callback(*failure);
    auto samples = std::make_shared<std::vector<Sample>>(
      std::move(std::get<std::vector<Sample>>(result)));
    run_job<RunDone>(*task.worker->host, task.who(), callback,
                     [=] { return end_own(task, *samples); });
  };
  task.worker->host->post([task, callback, on_samples] {
    try {
      WorkerContext& worker = *task.worker;
      worker.own->crew(worker, *task.own)
        ->run({.who = task.who(),
               .call = task.call->name,
               .step = task.step,
               .samples = own_samples(worker, task.step, *task.own, *task.rows),
               .done = on_samples});
    } catch (const std::exception& error) {
      callback(to_failure(error, task.who()));
    }
  });
}

void run_own(const OwnTask& task, const OnRunDone& callback) {
  if (task.own->actor.spawner)
    return run_own_actor(task, callback);
  run_job<RunDone>(*task.worker->host, task.who(), callback,
                   [task] { return run_own_here(task); });
}

caf::result<RunDone> run(FunctionSelf self, const Context& context,
                         const RunOrder& order) {
  Answer<RunDone> answer{self, context};
  auto worker = self->state.worker;
  auto rows
    = std::make_shared<net::Rows>(self->state.inbox.take(context.step, order));
  OnRunDone callback = self->state.open.open(self, answer);
  const plans::Call& call = worker->workflow.call(order.call);
  if (const auto* own = find_own_entry(call.fn)) {
    *rows = rename_in(call, std::move(*rows));
    run_own({worker, &call, own, context.step, rows, carried_of(order)},
            callback);
    return answer.promise();
  }
  const auto who = fmt::format("{}, {} of step {}", worker->who, order.call,
                               step_number(context.step));
  if (call.fn == rewards_fn)
    run_rewards(worker, context.step, call, *rows, who, callback);
  else
    run_job<RunDone>(*worker->host, who, std::move(callback),
                     [=, step = context.step] {
                       return run_here(*worker, step, order, *rows);
                     });
  return answer.promise();
}

} // namespace

FunctionActor::behavior_type
function_actor(FunctionSelf self, std::shared_ptr<WorkerContext> worker) {
  self->state.name = fmt::format("functions {}", worker->worker.value);
  self->state.worker = std::move(worker);
  return {
    [=](fetch_atom, const Context& context, const FetchOrder& order) {
      return fetch_rows(self, self->state.worker, context, order);
    },
    [=](run_atom, const Context& context, const RunOrder& order) {
      return run(self, context, order);
    },
    [=](done_atom, std::uint64_t id) { self->state.open.finish(id); },
  };
}

} // namespace troupe::actors
