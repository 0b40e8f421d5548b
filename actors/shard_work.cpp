#include "actors/shard_work.hpp"

#include "actors/call_options.hpp"
#include "config/defaults.hpp"
#include "models/rollout_replay.hpp"

#include <fmt/format.h>

#include <cstring>
#include <future>

namespace troupe::actors {

namespace {

models::RunContext run_context(Shard& shard, StepId step) {
  models::RunContext context;
  context.step = step;
  context.seed = shard.worker->settings.run.seed;
  context.track = shard.device->track();
  context.stop = &shard.device->stop_flag();
  context.progress = &shard.device->progress();
  context.dp = shard.dp;
  return context;
}

/// The replica's dp group; a group of one is none.
std::shared_ptr<net::Collectives> join_group(Shard& shard) {
  if (shard.replica.strategy.dp == 1)
    return nullptr;
  WorkerContext& worker = *shard.worker;
  net::GroupSpec spec;
  spec.name = fmt::format("{}-{}-r{}-dp", worker.run_id,
                          worker.incarnation.value, shard.replica.id.value);
  spec.index = shard.where.dp;
  for (const Rank rank : shard.replica.devices) {
    const WorkerId home = worker.plan.cluster.worker_of(rank);
    spec.members.push_back({home, worker.hosts.at(home)});
  }
  return net::make_host_collectives(spec, worker.groups);
}

void lend_weights(Shard& shard) {
  const auto id = export_id(shard.replica.id, shard.rank);
  const auto bytes = shard.engine->weights();
  shard.worker->weights.lend(id, bytes);
  shard.worker->data->export_memory(id, bytes.data(), bytes.size());
}

/// Keys as the call's function knows them, and back (plans::Rename).
net::Rows rename_in(const plans::Call& call, net::Rows rows) {
  for (auto& column : rows.columns)
    column.key = call.argument(column.key);
  return rows;
}

net::Rows rename_out(const plans::Call& call, net::Rows rows) {
  for (auto& column : rows.columns)
    for (const auto& key : call.writes)
      if (call.argument(key) == column.key)
        column.key = key;
  return rows;
}

models::TrainSpec train_spec_of(Shard& shard, const plans::Call& call,
                                const RunOrder& order) {
  const WorkerContext& worker = *shard.worker;
  auto spec
    = train_spec(worker.settings, call, worker.plan.calls.at(call.name));
  for (std::uint32_t epoch = 0; epoch < order.epochs; ++epoch)
    spec.mini_batches.insert(spec.mini_batches.end(), order.batches.begin(),
                             order.batches.end());
  for (const auto& carried : order.carried)
    if (carried.name == "kl_coef")
      spec.loss.kl_coef = carried.value.number();
  return spec;
}

RunDone generate_rows(Shard& shard, const plans::Call& call,
                      const net::Rows& rows, models::RunContext& context) {
  WorkerContext& worker = *shard.worker;
  if (worker.replay) {
    return stash_outputs(
      worker, context.step,
      rename_out(call, worker.replay->rows(context.step, rows.samples)));
  }
  auto options = generate_options(worker.settings, worker.shapes.at(call.role));
  if (options.stop_ids.empty() && worker.tokenizer().eos_id() >= 0)
    options.stop_ids = {worker.tokenizer().eos_id()};
  return stash_outputs(
    worker, context.step,
    rename_out(call, shard.engine->generate(rows, options, context)));
}

void copy_transfer(Shard& shard, const MoveOrder& order,
                   const plans::Transfer& part,
                   std::vector<std::future<std::optional<Failure>>>& pulls) {
  WorkerContext& worker = *shard.worker;
  const auto id = export_id(order.source, part.from);
  const auto target
    = shard.engine->weights().subspan(part.target_offset, part.bytes);
  const auto local = worker.weights.find(id);
  if (!local.empty()) {
    std::memcpy(target.data(), local.data() + part.source_offset, part.bytes);
    return;
  }
  auto promise = std::make_shared<std::promise<std::optional<Failure>>>();
  pulls.push_back(promise->get_future());
  worker.data->pull_memory(worker.plan.cluster.worker_of(part.from), id,
                           part.source_offset, target,
                           [promise](std::optional<Failure> failure) {
                             promise->set_value(std::move(failure));
                           });
}

/// This device's receives, compiled at the first move of a pair.
const std::vector<plans::Transfer>& transfers_from(Shard& shard,
                                                   ReplicaId source_id) {
  const auto found = shard.transfers.find(source_id);
  if (found != shard.transfers.end())
    return found->second;
  const WorkerContext& worker = *shard.worker;
  const auto shapes = parameters(worker.shapes.at(shard.replica.role));
  const auto layout_of = [&](const plans::Replica& replica) {
    return plans::make_layout(shapes, replica.strategy, replica.devices,
                              DType::f32);
  };
  const auto all
    = plans::move_plan(layout_of(worker.replicas[source_id]),
                       layout_of(shard.replica), worker.plan.cluster);
  return shard.transfers
    .emplace(source_id, plans::transfers_to(all, shard.rank))
    .first->second;
}

} // namespace

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
    std::chrono::steady_clock::now().time_since_epoch().count());
}

std::vector<SumPart> to_parts(const models::Sums& sums) {
  std::vector<SumPart> parts;
  for (const auto& entry : sums.all())
    parts.push_back({entry.name, static_cast<std::uint8_t>(entry.kind),
                     Bits{entry.sum}, Bits{entry.weight}});
  return parts;
}

models::Sums to_sums(const std::vector<SumPart>& parts) {
  models::Sums sums;
  for (const auto& part : parts)
    sums.add(models::Sum{part.name, part.sum.number(), part.weight.number(),
                         static_cast<models::SumKind>(part.kind)});
  return sums;
}

RunDone stash_outputs(WorkerContext& worker, StepId step, net::Rows outputs) {
  RunDone done;
  done.holder = worker.worker;
  done.samples = outputs.samples;
  done.bytes = outputs.size_bytes();
  for (const auto& column : outputs.columns) {
    done.keys.push_back(column.key);
    if (column.key == "sequence_ids")
      done.tokens = column.lengths;
  }
  if (!outputs.samples.empty())
    worker.stash.put(step, std::move(outputs));
  return done;
}

LoadDone load_shard(Shard& shard, const LoadOrder& order) {
  const WorkerContext& worker = *shard.worker;
  auto spec
    = engine_spec(worker.settings, worker.workflow,
                  worker.workflow.role(shard.replica.role), order.folder);
  spec.trainable = spec.trainable && shard.replica.home;
  spec.strategy = shard.replica.strategy;
  spec.where = shard.where;
  shard.engine = std::make_unique<models::Engine>(std::move(spec));
  if (!order.shape_only)
    shard.engine->load_weights();
  if (!order.state_file.empty())
    shard.engine->load_state(order.state_file);
  shard.dp = join_group(shard);
  lend_weights(shard);
  return {shard.engine->weights().size()};
}

RunDone run_shard(Shard& shard, StepId step, const RunOrder& order,
                  const net::Rows& fetched) {
  const WorkerContext& worker = *shard.worker;
  const plans::Call& call = worker.workflow.call(order.call);
  const trace::Span span{shard.device->track(), trace::name(call.name),
                         step.value};
  const auto begin = now_ns();
  models::RunContext context = run_context(shard, step);
  const net::Rows rows = rename_in(call, fetched);
  RunDone done;
  switch (call.kind) {
  case plans::CallKind::generate:
    done = generate_rows(shard, call, rows, context);
    break;
  case plans::CallKind::inference:
    done = stash_outputs(
      *shard.worker, step,
      rename_out(call, shard.engine->infer(
                         call.fn, rows, context,
                         infer_options(worker.settings, call,
                                       worker.plan.calls.at(call.name)))));
    break;
  case plans::CallKind::train:
    done.holder = worker.worker;
    done.sums = to_parts(
      shard.engine->train(train_spec_of(shard, call, order), rows, context));
    break;
  case plans::CallKind::function:
    TROUPE_CHECK(false, "functions do not run on shards");
  }
  done.begin_ns = begin;
  done.busy_ns = now_ns() - begin;
  return done;
}

MoveDone move_shard(Shard& shard, StepId step, const MoveOrder& order) {
  const trace::Span span{shard.device->track(), trace::name("move"),
                         step.value};
  MoveDone done;
  done.begin_ns = now_ns();
  std::vector<std::future<std::optional<Failure>>> pulls;
  const auto me = shard.worker->worker;
  for (const auto& part : transfers_from(shard, order.source)) {
    copy_transfer(shard, order, part, pulls);
    done.bytes += part.bytes;
    if (shard.worker->plan.cluster.worker_of(part.from) != me)
      done.wire_bytes += part.bytes;
  }
  std::optional<Failure> failed;
  for (auto& pull : pulls)
    if (auto failure = pull.get(); failure && !failed)
      failed = failure;
  if (failed)
    throw FailureError{*failed};
  shard.engine->weights_changed();
  done.busy_ns = now_ns() - done.begin_ns;
  if (shard.worker->settings.run.check_moves)
    done.checksum = shard.engine->checksum();
  return done;
}

CopyDone copy_shard(Shard& shard, const CopyOrder& order) {
  const trace::Span span{shard.device->track(), trace::name("copy")};
  shard.engine->copy_to(shard.snapshot, order.moments);
  return {shard.engine->weights().size()};
}

WriteDone write_shard(Shard& shard, const WriteOrder& order) {
  const trace::Span span{shard.worker->writer->track(), trace::name("write")};
  const auto dtype = static_cast<DType>(order.dtype);
  // not from a checkpoint that was loaded: it goes when newer ones are there
  const auto& models = shard.worker->settings.models;
  shard.snapshot.save_hf(order.folder,
                         {.dtype = dtype,
                          .max_shard_bytes = order.max_shard_bytes,
                          .files_from = models.at(shard.replica.role).path});
  if (!order.state_file.empty())
    shard.snapshot.save_state(order.state_file,
                              /*with_weights=*/dtype != DType::f32);
  return {shard.engine->weights().size()};
}

} // namespace troupe::actors
