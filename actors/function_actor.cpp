#include "actors/function_actor.hpp"

#include "actors/recording.hpp"
#include "actors/shard_work.hpp"
#include "models/functions.hpp"
#include "models/rollout_record.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

using FunctionSelf = Self<FunctionActor, FunctionState>;

RunDone record(WorkerContext& worker, StepId step, const net::Rows& rows) {
  models::append_samples(worker.run_folder / "samples.jsonl", step, rows,
                         worker.tokenizer());
  RunDone done;
  done.holder = worker.worker;
  return done;
}

RunDone run_registered(WorkerContext& worker, StepId step,
                       const RunOrder& order, const plans::Call& call,
                       const net::Rows& rows) {
  models::FunctionContext context{
    .settings = worker.settings, .step = step, .carried = {}};
  for (const auto& carried : order.carried)
    context.carried[carried.name] = carried.value.number();
  auto result = models::run_function(call.fn, rows, context);
  RunDone done
    = stash_outputs(worker, step, net::select_keys(result.rows, call.writes));
  done.sums = to_parts(result.sums);
  for (const auto& [name, value] : result.carried)
    done.carried.push_back({name, Bits{value}});
  return done;
}

RunDone run_here(WorkerContext& worker, StepId step, const RunOrder& order,
                 const net::Rows& rows) {
  const plans::Call& call = worker.workflow.call(order.call);
  const trace::Span span{worker.host->track(), trace::name(call.name),
                         step.value};
  const auto begin = now_ns();
  RunDone done = call.fn == record_fn
                   ? record(worker, step, rows)
                   : run_registered(worker, step, order, call, rows);
  done.begin_ns = begin;
  done.busy_ns = now_ns() - begin;
  return done;
}

caf::result<RunDone> run(FunctionSelf self, const Context& context,
                         const RunOrder& order) {
  Answer<RunDone> answer{self, context};
  auto worker = self->state.worker;
  auto rows = std::make_shared<net::Rows>(
    self->state.inbox.take(context.step, order));
  auto callback = self->state.open.open(self, answer);
  run_job<RunDone>(*worker->host,
                   fmt::format("{}, {} of step {}", worker->who, order.call,
                               context.step.value),
                   std::move(callback), [=, step = context.step] {
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
