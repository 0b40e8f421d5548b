#include "actors/worker/device_jobs.hpp"

#include "actors/protocol/sum_parts.hpp"
#include "actors/user/user_actors.hpp"
#include "actors/worker/ptx_rows.hpp"
#include "actors/worker/shard_groups.hpp"
#include "actors/worker/shard_memory.hpp"
#include "actors/worker/shard_residency.hpp"
#include "actors/worker/shard_server.hpp"
#include "actors/worker/shard_snapshot.hpp"
#include "actors/worker/weight_moves.hpp"
#include "actors/worker_base/call_options.hpp"
#include "actors/worker_base/task_rows.hpp"
#include "config/trace/trace_at.hpp"
#include "models/hf/peft_folder.hpp"
#include "models/parallel/parameters.hpp"
#include "plans/memory/memory_model.hpp"
#include "plans/weights/gather_buffers.hpp"
#include "plans/weights/residency.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

/// Stores rows in the stash if this device's are the ones that count, of those
/// of a cp group the first one's.
RunDone keep_outputs(Shard& shard, StepId step, const plans::Call& call,
                     net::Rows rows) {
  if (!gives_results(shard)
      || context_rank_of(shard.replica.strategy, shard.where) > 0)
    rows = {};
  rows = rename_out(call, std::move(rows));
  trace_rows(shard.device->track(), "writes", step, rows);
  return stash_outputs(*shard.worker, step, call, std::move(rows));
}

models::TrainSpec train_spec_of(Shard& shard, const plans::Call& call,
                                const RunOrder& order) {
  const WorkerContext& worker = *shard.worker;
  auto spec = train_spec(worker.run.settings, call,
                         worker.run.plan.calls.at(call.name));
  for (std::uint32_t epoch = 0; epoch < order.epochs; ++epoch)
    spec.mini_batches.insert(spec.mini_batches.end(), order.batches.begin(),
                             order.batches.end());
  const auto& loss = models::losses().find(call.fn);
  for (const auto& carried : order.carried)
    models::take_carried(loss, carried.name, carried.value.number(), spec.loss);
  return spec;
}

} // namespace

models::RunContext run_context(Shard& shard, StepId step) {
  models::RunContext context;
  context.step = step;
  context.seed = shard.worker->run.settings.run.seed;
  context.track = shard.device->track();
  context.stop = &shard.device->stop_flag();
  context.progress = &shard.device->progress();
  context.groups = shard.groups;
  return context;
}

bool gives_results(const Shard& shard) {
  return shard.where.tp == 0 && shard.where.pp + 1 == shard.replica.strategy.pp;
}

namespace {

/// Returns the settings of the shard's engine. Frozen weights are read whatever
/// a snapshot or a move brings.
models::Engine::Spec shard_spec(const Shard& shard, const LoadOrder& order,
                                bool reads_weights) {
  const RunDescription& run = shard.worker->run;
  const std::string& role = shard.replica.role;
  const LoraShape& lora = run.shapes.at(role).lora;
  const auto folder = run.files->local(
    order.folder, reads_weights || lora.exists() ? ModelFiles::all
                                                 : ModelFiles::all_but_weights);
  auto spec
    = engine_spec(run.settings, run.workflow, run.workflow.role(role), folder);
  spec.adapters.lora = lora;
  if (!lora.exists() || !models::is_peft_folder(folder))
    return spec;
  spec.adapters.folder = folder;
  spec.folder
    = run.files->local(run.settings.models.at(role).path, ModelFiles::all);
  return spec;
}

/// Returns who reads and changes the weights of the shard's engine.
models::WeightUse weight_use(const Shard& shard, const LoadOrder& order) {
  const auto& replica = shard.replica;
  const auto& shape = shard.worker->run.shapes.at(replica.role);
  if (order.frozen && !plans::needs_masters(shape, replica.strategy))
    return models::WeightUse::frozen;
  return replica.home ? models::WeightUse::shared : models::WeightUse::moved;
}

/// Returns whether the engine may leave in the device's memory what generation
/// allocates. Servers have their own, and are checked by passes of the engine;
/// and plans count no cache beside the space in which adapters are merged, or
/// the weights of z3 gathered.
bool keeps_generator(const Shard& shard) {
  const RunDescription& run = shard.worker->run;
  const auto serves = [&](const std::string& call) {
    return is_served(shard, run.workflow.call(call));
  };
  return plans::only_generates(run.workflow, run.plan, run.replicas,
                               shard.replica)
         && std::ranges::none_of(shard.replica.calls, serves)
         && !run.shapes.at(shard.replica.role).lora.exists()
         && !plans::cuts_weights(shard.replica.strategy);
}

} // namespace

LoadDone load_shard(Shard& shard, const LoadOrder& order) {
  const WorkerContext& worker = *shard.worker;
  FileSource& files = *worker.run.files;
  const bool reads_weights = order.snapshot.id == 0 && !order.shape_only;
  auto spec = shard_spec(shard, order, reads_weights);
  spec.trainable = spec.trainable && shard.replica.home;
  spec.weight_use = weight_use(shard, order);
  spec.strategy = shard.replica.strategy;
  spec.where = shard.where;
  spec.keeps_generator = keeps_generator(shard);
  if (spec.trainable)
    spec.losses = worker.user->losses().find(
      worker, shard.rank, shard.replica.role, shard.device->stop_flag());
  if (worker.run.settings.cluster.device == "gpu")
    spec.backend = &gpu_backend_of(shard);
  limit_memory(shard);
  shard.engine = std::make_unique<models::Engine>(
    std::move(spec), &shard.worker->threads.workspaces.at(shard.rank));
  if (reads_weights)
    shard.engine->load_weights();
  else
    shard.engine->load_frozen();
  if (order.snapshot.id != 0)
    restore_shard(shard, order.snapshot);
  if (!order.state_file.empty())
    shard.engine->load_state(files.local(order.state_file));
  shard.groups = join_groups(shard);
  begin_residency(shard);
  publish_planes(shard);
  return {shard.engine->device_bytes()};
}

RunDone run_shard(Shard& shard, StepId step, const RunOrder& order,
                  const net::Rows& fetched) {
  const WorkerContext& worker = *shard.worker;
  const plans::Call& call = worker.run.workflow.call(order.call);
  const trace::Span span{shard.device->track(), trace::name(call.name),
                         step.value};
  const auto begin = trace::now_ns();
  begin_peak(shard);
  models::RunContext context = run_context(shard, step);
  trace_rows(context.track, "reads", step, fetched);
  const net::Rows rows = rename_in(call, fetched);
  RunDone done;
  switch (call.kind) {
  case plans::CallKind::inference:
    done = keep_outputs(
      shard, step, call,
      shard.engine->infer(call.fn, rows, context,
                          infer_options(worker.run.settings, call,
                                        worker.run.plan.calls.at(call.name))));
    break;
  case plans::CallKind::train: {
    const auto beside = ptx_rows_of(shard, step, call, order);
    done.holder = worker.worker;
    done.sums
      = to_parts(shard.engine->train(train_spec_of(shard, call, order), rows,
                                     context, beside ? &*beside : nullptr));
    break;
  }
  case plans::CallKind::generate: // generate_chunks
  case plans::CallKind::function:
    TROUPE_CHECK(false, "it does not run like this");
  }
  done.begin_ns = begin;
  done.busy_ns = trace::now_ns() - begin;
  done.peaks = peaks_of(shard);
  return done;
}

WriteDone write_shard(Shard& shard, StepId step, const WriteOrder& order) {
  const trace::Span span{shard.worker->threads.writer->track(),
                         trace::name("write"), step.value};
  FileSource& files = *shard.worker->run.files;
  // not from a loaded checkpoint: it is removed when newer ones exist
  const auto source
    = files.local(shard.worker->run.settings.models.at(shard.replica.role).path,
                  ModelFiles::all_but_weights);
  return written_by(files, [&] {
    shard.snapshot.save_hf(files.to_write(order.folder),
                           {.dtype = order.dtype,
                            .max_shard_bytes = order.max_shard_bytes,
                            .files_from = source});
    if (!order.state_file.empty())
      shard.snapshot.save_state(files.to_write(order.state_file),
                                /*with_weights=*/order.dtype != DType::f32);
    return shard.snapshot.weight_bytes();
  });
}

} // namespace troupe::actors
