#include "actors/user/sample_stream.hpp"

#include "actors/user/reward_work.hpp"
#include "actors/user/user_actors.hpp"
#include "actors/user/user_work.hpp"
#include "actors/worker_base/row_gather.hpp"
#include "actors/worker_base/task_rows.hpp"
#include "plans/workflow/user_placement.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

bool may_begin(const plans::Call& call) {
  const auto* user = find_user_entry(call.fn);
  return call.fn == rewards_fn
         || (call.kind == plans::CallKind::function && user != nullptr
             && user->actor.spawner);
}

/// Returns whether the samples that a worker makes are dispatched to instances
/// there, or to where the plan has put those of the host.
bool has_instances(const WorkerContext& worker, const plans::Call& call) {
  const auto at = worker.run.plan.calls.find(call.name);
  const auto placement
    = at == worker.run.plan.calls.end() ? plans::Placement{} : at->second;
  return plans::instances_for(worker.run.plan.cluster, placement, worker.worker)
         == worker.worker;
}

/// Returns the keys of `call` that `rows` have.
net::Rows read_of(const plans::Call& call, const net::Rows& rows) {
  std::vector<std::string> keys;
  for (const auto& key : call.reads)
    if (rows.has(key))
      keys.push_back(key);
  return net::select_keys(rows, keys);
}

/// Returns the other keys of `call`, which the data file has.
net::Rows data_of(WorkerContext& worker, const plans::Call& call, StepId step,
                  SampleId sample) {
  RowSource source;
  source.holder = call.evaluates ? evaluation_holder : dataset_holder;
  source.samples = {sample};
  for (const auto& key : call.reads)
    if (worker.run.workflow.writer(key) == nullptr)
      source.keys.push_back(key);
  if (source.keys.empty())
    return {};
  source.rows = {worker.data.row_of(call, step, sample)};
  return local_rows(worker, step, source);
}

void stream_to_actor(WorkerContext& worker, const plans::Call& call,
                     StepId step, const net::Rows& made) {
  const auto& user = *find_user_entry(call.fn);
  std::vector<net::Rows> parts = {read_of(call, made)};
  parts.push_back(data_of(worker, call, step, made.samples.front()));
  worker.user->pool(worker, user)
    ->run({.who = who_of(worker, user, step),
           .call = call.name,
           .step = step,
           .samples = user_samples(worker, step, user,
                                   rename_in(call, join_parts(parts)))});
}

/// Sends the sample to its actor, on the host thread, as the call itself does.
/// Errors here recur in the call, which reports them.
void post_to_actor(const std::shared_ptr<WorkerContext>& worker,
                   const plans::Call& call, StepId step,
                   const net::Rows& made) {
  worker->threads.host->post([=, &call] {
    try {
      stream_to_actor(*worker, call, step, made);
    } catch (const std::exception&) { // ... and reported by the call
    }
  });
}

} // namespace

std::vector<const plans::Call*> readers_of_one(const plans::Workflow& workflow,
                                               const plans::Call& generates) {
  std::vector<const plans::Call*> readers;
  for (const auto& call : workflow.calls) {
    std::size_t made = 0;
    std::size_t others = 0;
    for (const auto& key : call.reads)
      if (const auto* writer = workflow.writer(key))
        ++(writer->name == generates.name ? made : others);
    if (may_begin(call) && made > 0 && others == 0)
      readers.push_back(&call);
  }
  return readers;
}

SampleStream stream_of(const std::shared_ptr<WorkerContext>& worker,
                       const plans::Call& generates, StepId step) {
  auto readers = readers_of_one(worker->run.workflow, generates);
  std::erase_if(readers, [&](const plans::Call* call) {
    return call->fn != rewards_fn && !has_instances(*worker, *call);
  });
  if (readers.empty())
    return {};
  return [=, &generates](const net::Rows& sample) {
    const auto made = rename_out(generates, sample);
    for (const auto* call : readers)
      if (call->fn == rewards_fn)
        worker->rewards->offer(*call, step,
                               rename_in(*call, read_of(*call, made)));
      else
        post_to_actor(worker, *call, step, made);
  };
}

} // namespace troupe::actors
