#include "actors/worker/function_actor.hpp"

#include "actors/protocol/sum_parts.hpp"
#include "actors/user/reward_work.hpp"
#include "actors/user/user_work.hpp"
#include "actors/worker_base/call_options.hpp"
#include "actors/worker_base/sample_log.hpp"
#include "actors/worker_base/task_rows.hpp"
#include "config/trace/trace_at.hpp"
#include "models/records/evaluation.hpp"
#include "models/records/rollout_record.hpp"
#include "models/records/row_lines.hpp"
#include "models/rl/functions.hpp"
#include "plans/schedule/slice_versions.hpp"

#include <fmt/format.h>

#include <string_view>

namespace troupe::actors {

namespace {

using FunctionSelf = Self<FunctionActor, FunctionState>;

/// Function that writes rows to a file of the run folder instead of producing
/// new ones: samples.jsonl, and the rows of commands.
using RowWriter = void (*)(WorkerContext&, StepId, const net::Rows&);

/// Returns which weights made which tokens of the step's responses; none where
/// all of them are by the newest, or recorded.
std::vector<plans::VersionSpan> versions_of(const RunDescription& run,
                                            StepId step) {
  const auto* generates = run.workflow.writer("sequence_ids");
  if (generates == nullptr || run.plan.most_lag_of(generates->name) == 0
      || !run.settings.run.replay.empty())
    return {};
  return plans::version_spans(run.plan, generates->name, step,
                              run.settings.rollout.max_new_tokens);
}

void record(WorkerContext& worker, StepId step, const net::Rows& rows) {
  worker.run.files->append(
    worker.run.folder / samples_file,
    models::sample_lines(step, rows, sample_keys(worker.run.workflow),
                         worker.data.tokenizer(),
                         versions_of(worker.run, step)));
}

/// Returns where the batch of `step` begins in the data file, which commands
/// read once from start to end.
models::LineSource line_source(WorkerContext& worker, StepId step) {
  const Settings& settings = worker.run.settings;
  const bool prompts = worker.run.workflow.samples_are_prompts;
  return {.data = worker.data.dataset(),
          .tokenizer = worker.data.tokenizer(),
          .first_row
          = step.value * static_cast<std::uint32_t>(settings.data.batch_size),
          .samples_per_row
          = prompts ? static_cast<std::uint32_t>(settings.rollout.n) : 1};
}

void append_command_rows(WorkerContext& worker, const std::string& lines) {
  worker.run.files->append(worker.run.folder / command_rows_file, lines);
}

void write_responses(WorkerContext& worker, StepId step,
                     const net::Rows& rows) {
  append_command_rows(worker,
                      models::response_lines(line_source(worker, step), rows));
}

void write_scores(WorkerContext& worker, StepId step, const net::Rows& rows) {
  append_command_rows(worker,
                      models::score_lines(line_source(worker, step), rows));
}

RowWriter writer_of(std::string_view fn) {
  if (fn == record_fn)
    return record;
  if (fn == "write_answers")
    return write_responses;
  return fn == "write_scores" ? write_scores : nullptr;
}

models::CarriedValues carried_of(const RunOrder& order) {
  models::CarriedValues values;
  for (const auto& carried : order.carried)
    values[carried.name] = carried.value.number();
  return values;
}

/// `track` is that of the thread, which is inside the call's slice.
RunDone keep_result(WorkerContext& worker, StepId step, const plans::Call& call,
                    models::FunctionResult result, trace::Track track) {
  auto rows
    = net::select_keys(rename_out(call, std::move(result.rows)), call.writes);
  trace_rows(track, "writes", step, rows);
  RunDone done = stash_outputs(worker, step, call, std::move(rows));
  if (!call.greedy) // or they would be stored under the names of the sampled
                    // responses
    done.sums = to_parts(result.sums);
  for (const auto& [name, value] : result.carried)
    done.carried.push_back({name, Bits{value}});
  return done;
}

RunDone run_registered(WorkerContext& worker, StepId step,
                       const RunOrder& order, const plans::Call& call,
                       const net::Rows& rows) {
  const models::FunctionContext context{.settings = worker.run.settings,
                                        .step = step,
                                        .carried = carried_of(order)};
  return keep_result(
    worker, step, call,
    models::run_function(call.fn, rename_in(call, rows), context),
    worker.threads.host->track());
}

/// Ends an evaluation: writes a file of its rows, and its metrics.
RunDone run_evaluator(WorkerContext& worker, StepId step,
                      models::Evaluator evaluator, const net::Rows& rows) {
  const auto result
    = evaluator({.data = worker.data.evaluation(),
                 .tokenizer = worker.data.tokenizer(),
                 .step = step,
                 .samples_per_row
                 = samples_per_row(worker.run.settings, worker.run.workflow,
                                   /*evaluates=*/true),
                 .pass_at = worker.run.settings.eval.pass_at,
                 .preference = worker.run.settings.algorithm.preference},
                rows);
  const auto file = evaluation_file(worker.run.folder, step);
  models::write_file_whole(file, result.lines);
  worker.run.files->give(file);
  RunDone done;
  done.holder = worker.worker;
  done.sums = to_parts(result.sums);
  return done;
}

RunDone run_here(WorkerContext& worker, StepId step, const RunOrder& order,
                 const net::Rows& rows) {
  const plans::Call& call = worker.run.workflow.call(order.call);
  const trace::Span span{worker.threads.host->track(), trace::name(call.name),
                         step.value};
  trace_rows(worker.threads.host->track(), "reads", step, rows);
  const auto begin = trace::now_ns();
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
  done.busy_ns = trace::now_ns() - begin;
  return done;
}

using OnRunDone = std::function<void(Result<RunDone>)>;

/// Runs the scorer, which may have begun already; it calls back when the scores
/// are there.
void run_rewards(const std::shared_ptr<WorkerContext>& worker, StepId step,
                 const plans::Call& call, const net::Rows& rows,
                 const std::string& who, const OnRunDone& callback) {
  worker->rewards->run(
    call, step, rename_in(call, rows),
    [=, &call, begin = trace::now_ns()](const GetRewards& rewards) {
      callback(result_of<RunDone>(who, [&] {
        auto done = keep_result(*worker, step, call, rewards(),
                                worker->rewards->track());
        done.begin_ns = begin;
        done.busy_ns = trace::now_ns() - begin;
        return done;
      }));
    });
}

/// One call of a user-defined program on this worker.
struct UserTask {
  std::shared_ptr<WorkerContext> worker;
  const plans::Call* call = nullptr; ///< its keys may be an evaluation's
  const UserEntry* user = nullptr;
  StepId step;
  std::shared_ptr<net::Rows> rows;
  models::CarriedValues carried; ///< as left by the step before
  std::uint64_t begin_ns = trace::now_ns();

  std::string who() const {
    return who_of(*worker, *user, step);
  }
};

RunDone end_user(const UserTask& task, const std::vector<Sample>& samples) {
  auto done = keep_user_outputs(*task.worker, task.step, *task.call, *task.user,
                                samples);
  done.begin_ns = task.begin_ns;
  done.busy_ns = trace::now_ns() - task.begin_ns;
  return done;
}

RunDone run_user_here(const UserTask& task) {
  WorkerContext& worker = *task.worker;
  const trace::Span span{worker.threads.host->track(),
                         trace::name(task.call->name), task.step.value};
  trace_rows(worker.threads.host->track(), "reads", task.step, *task.rows);
  if (!task.user->metrics.empty()) {
    RunDone done;
    done.holder = worker.worker;
    done.sums = to_parts(user_metric_sums(*task.user, *task.rows));
    return done;
  }
  auto samples = user_samples(worker, task.step, *task.user, *task.rows);
  auto carried = task.carried;
  run_user_function(worker, *task.user, samples, carried);
  RunDone done = end_user(task, samples);
  for (const auto& value : task.user->call.carried_out)
    done.carried.push_back({value.name, Bits{carried.at(value.name)}});
  return done;
}

/// Converts rows to samples on the host thread, sends them through the actor,
/// and converts them back. The call has a track of its own in the trace, as the
/// host does other work meanwhile.
void run_user_actor(const UserTask& task, const OnRunDone& callback) {
  const auto track = trace::track(task.call->name, trace::TrackKind::device);
  const auto name = trace::name(task.call->name);
  trace::begin(track, name, task.step.value);
  auto on_samples = [=](std::variant<std::vector<Sample>, Failure> result) {
    trace::end(track, name);
    if (auto* failure = std::get_if<Failure>(&result))
      return callback(*failure);
    auto samples = std::make_shared<std::vector<Sample>>(
      std::move(std::get<std::vector<Sample>>(result)));
    run_job<RunDone>(*task.worker->threads.host, task.who(), callback,
                     [=] { return end_user(task, *samples); });
  };
  task.worker->threads.host->post([task, callback, on_samples] {
    try {
      WorkerContext& worker = *task.worker;
      worker.user->pool(worker, *task.user)
        ->run(
          {.who = task.who(),
           .call = task.call->name,
           .step = task.step,
           .samples = user_samples(worker, task.step, *task.user, *task.rows),
           .done = on_samples});
    } catch (const std::exception& error) {
      callback(to_failure(error, task.who()));
    }
  });
}

void run_user(const UserTask& task, const OnRunDone& callback) {
  if (task.user->actor.spawner)
    return run_user_actor(task, callback);
  run_job<RunDone>(*task.worker->threads.host, task.who(), callback,
                   [task] { return run_user_here(task); });
}

caf::result<RunDone> run(FunctionSelf self, const Context& context,
                         const RunOrder& order) {
  Reply<RunDone> reply{self, context};
  auto worker = self->state.worker;
  auto rows
    = std::make_shared<net::Rows>(self->state.inbox.take(context.step, order));
  OnRunDone callback = self->state.open.open(self, reply);
  const plans::Call& call = worker->run.workflow.call(order.call);
  if (const auto* user = find_user_entry(call.fn)) {
    *rows = rename_in(call, std::move(*rows));
    run_user({worker, &call, user, context.step, rows, carried_of(order)},
             callback);
    return reply.promise();
  }
  const auto who = fmt::format("{}, {} of step {}", worker->who, order.call,
                               step_number(context.step));
  if (call.fn == rewards_fn)
    run_rewards(worker, context.step, call, *rows, who, callback);
  else
    run_job<RunDone>(*worker->threads.host, who, std::move(callback),
                     [=, step = context.step] {
                       return run_here(*worker, step, order, *rows);
                     });
  return reply.promise();
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
