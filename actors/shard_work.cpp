#include "actors/shard_work.hpp"

#include "actors/call_options.hpp"
#include "actors/shard_groups.hpp"
#include "config/defaults.hpp"
#include "models/parameters.hpp"
#include "models/rollout_replay.hpp"
#include "models/stop_texts.hpp"

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
  context.groups = shard.groups;
  return context;
}

/// Of the devices that have the same samples, the one whose results count.
bool gives_results(const Shard& shard) {
  return shard.where.tp == 0 && shard.where.pp + 1 == shard.replica.strategy.pp;
}

/// Rows into the stash, where this device's are the ones that count.
RunDone keep_outputs(Shard& shard, StepId step, const plans::Call& call,
                     net::Rows rows) {
  if (!gives_results(shard))
    rows = {};
  return stash_outputs(*shard.worker, step, call,
                       rename_out(call, std::move(rows)));
}

/// Planes that others may read: of the weights, for moves; of all, for saving.
std::vector<models::Plane> lent_planes(const Shard& shard) {
  std::vector<models::Plane> planes = {models::Plane::weight};
  if (shard.engine->parameters().trainable())
    planes.insert(planes.end(), {models::Plane::m, models::Plane::v});
  return planes;
}

void lend_planes(Shard& shard) {
  for (const auto plane : lent_planes(shard)) {
    const auto id = export_id(shard.replica.id, shard.rank,
                              static_cast<std::uint8_t>(plane));
    const auto bytes = std::as_bytes(shard.engine->parameters().plane(plane));
    shard.worker->weights.lend(id, bytes);
    shard.worker->data->export_memory(id, bytes.data(), bytes.size());
  }
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

/// Noise of its own for each generate call: two roles with equal weights must
/// not give equal answers. The first has the run's.
std::uint64_t noise_seed(const WorkerContext& worker, const plans::Call& call) {
  std::uint64_t before = 0;
  for (const auto& other : worker.workflow.calls) {
    if (other.name == call.name)
      break;
    before += other.kind == plans::CallKind::generate
                  && other.evaluates == call.evaluates
                ? 1
                : 0;
  }
  return worker.settings.run.seed + before * 0x9E3779B97F4A7C15;
}

RunDone generate_rows(Shard& shard, const plans::Call& call,
                      const net::Rows& rows, models::RunContext& context) {
  WorkerContext& worker = *shard.worker;
  if (worker.replay && !call.evaluates)
    return keep_outputs(shard, context.step, call,
                        worker.replay->rows(context.step, rows.samples));
  auto options
    = generate_options(worker.settings, call, worker.shapes.at(call.role));
  options.seed = noise_seed(worker, call);
  if (options.stop_ids.empty() && worker.tokenizer().eos_id() >= 0)
    options.stop_ids = {worker.tokenizer().eos_id()};
  if (const auto& stop = worker.settings.rollout.stop; !stop.empty())
    options.stop_texts
      = std::make_shared<models::StopTexts>(worker.tokenizer(), stop);
  return keep_outputs(shard, context.step, call,
                      shard.engine->generate(rows, options, context));
}

/// Bytes on their way to this device.
class Pulls {
public:
  explicit Pulls(Shard& shard) : shard_(shard) {}

  /// A run of plane `plane` of `source`: copied now, or pulled from its worker.
  void take(ReplicaId source, std::uint8_t plane, const plans::Transfer& part,
            std::span<std::byte> into) {
    WorkerContext& worker = *shard_.worker;
    const auto id = export_id(source, part.from, plane);
    const auto target = into.subspan(part.target_offset, part.bytes);
    const auto local = worker.weights.find(id);
    if (!local.empty()) {
      std::memcpy(target.data(), local.data() + part.source_offset, part.bytes);
      return;
    }
    auto promise = std::make_shared<std::promise<std::optional<Failure>>>();
    pending_.push_back(promise->get_future());
    worker.data->pull_memory(worker.plan.cluster.worker_of(part.from), id,
                             part.source_offset, target,
                             [promise](std::optional<Failure> failure) {
                               promise->set_value(std::move(failure));
                             });
  }
  /// Throws the first failure once all have ended.
  void wait() {
    std::optional<Failure> failed;
    for (auto& pull : pending_)
      if (auto failure = pull.get(); failure && !failed)
        failed = failure;
    if (failed)
      throw FailureError{*failed};
  }

private:
  Shard& shard_;
  std::vector<std::future<std::optional<Failure>>> pending_;
};

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

RunDone stash_outputs(WorkerContext& worker, StepId step,
                      const plans::Call& call, net::Rows outputs) {
  RunDone done;
  done.holder = worker.worker;
  done.samples = outputs.samples;
  done.bytes = outputs.size_bytes();
  for (const auto& column : outputs.columns) {
    done.keys.push_back(column.key);
    if (call.argument(column.key) == "sequence_ids")
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
  shard.groups = join_groups(shard);
  lend_planes(shard);
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
    done = keep_outputs(
      shard, step, call,
      shard.engine->infer(
        call.fn, rows, context,
        infer_options(worker.settings, call, worker.plan.calls.at(call.name))));
    break;
  case plans::CallKind::train:
    done.holder = worker.worker;
    done.sums = to_parts(
      shard.engine->train(train_spec_of(shard, call, order), rows, context));
    if (!gives_results(shard))
      done.sums.clear();
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
  Pulls pulls(shard);
  const auto me = shard.worker->worker;
  for (const auto& part : transfers_from(shard, order.source)) {
    pulls.take(order.source, 0, part, shard.engine->weights());
    done.bytes += part.bytes;
    if (shard.worker->plan.cluster.worker_of(part.from) != me)
      done.wire_bytes += part.bytes;
  }
  pulls.wait();
  shard.engine->weights_changed();
  done.busy_ns = now_ns() - done.begin_ns;
  if (shard.worker->settings.run.check_moves)
    done.checksum = shard.engine->checksum();
  return done;
}

/// The move from a replica's layout to whole tensors here. Others' planes are
/// read where they are: weights stay as they are until the copy is done.
CopyDone copy_shard(Shard& shard, const CopyOrder& order) {
  const trace::Span span{shard.device->track(), trace::name("copy")};
  const WorkerContext& worker = *shard.worker;
  const plans::Replica& replica = shard.replica;
  const auto shapes = parameters(worker.shapes.at(replica.role));
  const auto whole = plans::make_layout(shapes, Strategy{},
                                        std::vector{shard.rank}, DType::f32);
  shard.engine->describe(shard.snapshot, order.moments);
  CopyDone done;
  Pulls pulls(shard);
  for (const auto plane : lent_planes(shard)) {
    const bool weights = plane == models::Plane::weight;
    if (!weights && !order.moments)
      continue;
    const auto layout = plans::make_layout(
      shapes, replica.strategy, replica.devices, DType::f32,
      weights ? plans::Plane::weight : plans::Plane::optimizer);
    const auto room = shard.snapshot.room(plane);
    for (const auto& part :
         plans::move_plan(layout, whole, worker.plan.cluster))
      pulls.take(replica.id, static_cast<std::uint8_t>(plane), part, room);
    if (weights)
      done.bytes = room.size();
  }
  pulls.wait();
  return done;
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
