#include "actors/shard_work.hpp"

#include "actors/call_options.hpp"
#include "actors/resident_memory.hpp"
#include "actors/shard_groups.hpp"
#include "config/defaults.hpp"
#include "models/blend.hpp"
#include "models/gpu.hpp"
#include "models/parameters.hpp"

#include <fmt/format.h>

#include <cstring>

namespace troupe::actors {

namespace {

/// Rows into the stash, where this device's are the ones that count.
RunDone keep_outputs(Shard& shard, StepId step, const plans::Call& call,
                     net::Rows rows) {
  if (!gives_results(shard))
    rows = {};
  rows = rename_out(call, std::move(rows));
  trace_rows(shard.device->track(), "writes", step, rows);
  return stash_outputs(*shard.worker, step, call, std::move(rows));
}

/// Planes that others may read: of the weights, for moves; of all, for saving.
std::vector<models::Plane> lent_planes(const Shard& shard) {
  std::vector<models::Plane> planes = {models::Plane::weight};
  if (shard.engine->parameters().trainable())
    planes.insert(planes.end(), {models::Plane::m, models::Plane::v});
  return planes;
}

void lend_planes(Shard& shard) {
  WorkerContext& worker = *shard.worker;
  for (const auto plane : lent_planes(shard)) {
    const auto id = export_id(shard.replica.id, shard.rank,
                              static_cast<std::uint8_t>(plane));
    const auto& block = shard.engine->parameters().lent(plane);
    worker.weights.lend(id, {block.data(), block.size_bytes()});
    worker.data->export_memory(id, block.data(), block.size_bytes());
    if (const auto place = block.place()) {
      shard.places.push_back(std::make_unique<net::MemoryPlace>(*place));
      worker.data->export_memory(net::place_id(id), shard.places.back().get(),
                                 sizeof(net::MemoryPlace));
    }
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

/// Where plane `plane` of `replica` is on `from`: in this process, in one of
/// this host, or to be pulled.
models::PlaneSource find_plane(WorkerContext& worker, ReplicaId replica,
                               Rank from, models::Plane plane) {
  models::PlaneSource source{
    .worker = worker.plan.cluster.worker_of(from),
    .id = export_id(replica, from, static_cast<std::uint8_t>(plane)),
    .bytes = {}};
  source.bytes
    = source.worker == worker.worker
        ? worker.weights.find(source.id)
        : worker.peer_memory.find(*worker.data, source.worker, source.id);
  return source;
}

/// This device's part of a move of a plane of `source`.
models::WeightMove compile_move(Shard& shard, const plans::Layout& source,
                                const plans::Layout& target, ReplicaId replica,
                                models::Plane plane) {
  WorkerContext& worker = *shard.worker;
  const auto all = plans::move_plan(source, target, worker.plan.cluster);
  return {plans::transfers_to(all, shard.rank),
          [&](Rank from) { return find_plane(worker, replica, from, plane); },
          *worker.data};
}

plans::Layout layout_of(const Shard& shard, const plans::Replica& replica,
                        plans::Plane plane = plans::Plane::weight) {
  const auto& shape = shard.worker->shapes.at(shard.replica.role);
  return plans::make_layout(parameters(shape), replica.strategy,
                            replica.devices, DType::f32, plane);
}

/// Compiled at the first move of a pair.
models::WeightMove& move_from(Shard& shard, ReplicaId source) {
  auto found = shard.moves.find(source);
  if (found == shard.moves.end())
    found
      = shard.moves
          .emplace(source,
                   compile_move(
                     shard, layout_of(shard, shard.worker->replicas[source]),
                     layout_of(shard, shard.replica), source,
                     models::Plane::weight))
          .first;
  return found->second;
}

/// From the replica's layout to whole tensors here.
models::WeightMove& whole_of(Shard& shard, models::Plane plane) {
  auto found = shard.whole.find(plane);
  if (found == shard.whole.end()) {
    const plans::Replica here{.devices = {shard.rank}};
    const auto kind = plane == models::Plane::weight ? plans::Plane::weight
                                                     : plans::Plane::optimizer;
    found = shard.whole
              .emplace(
                plane,
                compile_move(shard, layout_of(shard, shard.replica, kind),
                             layout_of(shard, here), shard.replica.id, plane))
              .first;
  }
  return found->second;
}

/// Where they lie: offloaded weights are blended in host memory. Returns the
/// checksum of what came, for run.check_moves: it is fetched once more, and the
/// move must make of it what blending the whole makes.
std::uint64_t blend_in(Shard& shard, models::WeightMove& move,
                       const plans::Following& follows) {
  const auto& newest = shard.engine->parameters().newest(models::Plane::weight);
  const std::span weights{newest.data(), newest.size_bytes()};
  const auto& settings = shard.worker->settings;
  const auto staging_bytes = settings.cluster.move_staging_bytes();
  if (!settings.run.check_moves) {
    move.blend(weights, follows.decay, staging_bytes);
    return 0;
  }
  std::vector<float> expected(weights.size() / sizeof(float));
  std::vector<float> incoming(expected.size()); // padding is zero
  std::memcpy(expected.data(), weights.data(), weights.size());
  move.run(std::as_writable_bytes(std::span(incoming)));
  models::blend(expected, incoming, follows.decay);
  move.blend(weights, follows.decay, staging_bytes);
  if (std::memcmp(expected.data(), weights.data(), weights.size()) != 0)
    throw FailureError({.code = Errc::bug,
                        .who = shard.device->name(),
                        .what = "the weights were blended wrongly",
                        .cause = ""});
  return shard.engine->checksum_of(std::as_bytes(std::span(incoming)));
}

} // namespace

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

bool gives_results(const Shard& shard) {
  return shard.where.tp == 0 && shard.where.pp + 1 == shard.replica.strategy.pp;
}

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

void trace_rows(trace::Track track, std::string_view verb, StepId step,
                const net::Rows& rows) {
  if (!trace::enabled())
    return;
  for (const auto& column : rows.columns) {
    const auto text = trace::name(fmt::format("{} {}", verb, column.key));
    trace::begin(track, text, step.value, column.data.size_bytes());
    trace::end(track, text);
  }
}

LoadDone load_shard(Shard& shard, const LoadOrder& order) {
  const WorkerContext& worker = *shard.worker;
  auto spec
    = engine_spec(worker.settings, worker.workflow,
                  worker.workflow.role(shard.replica.role), order.folder);
  spec.trainable = spec.trainable && shard.replica.home;
  spec.lends = shard.replica.home;
  spec.strategy = shard.replica.strategy;
  spec.where = shard.where;
  spec.workspaces = &shard.worker->workspaces.at(shard.rank);
  if (worker.settings.cluster.device == "gpu")
    spec.compute = &models::gpu_compute(
      shard.rank.value
      % static_cast<std::uint32_t>(
        worker.settings.cluster.devices_per_node.value_or(1)));
  shard.engine = std::make_unique<models::Engine>(std::move(spec));
  if (!order.shape_only)
    shard.engine->load_weights();
  if (!order.state_file.empty())
    shard.engine->load_state(order.state_file);
  shard.groups = join_groups(shard);
  begin_life(shard);
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
  shard.device->memory().begin_peak();
  models::RunContext context = run_context(shard, step);
  trace_rows(context.track, "reads", step, fetched);
  const net::Rows rows = rename_in(call, fetched);
  RunDone done;
  switch (call.kind) {
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
  case plans::CallKind::generate: // generate_chunks
  case plans::CallKind::function:
    TROUPE_CHECK(false, "it does not run like this");
  }
  done.begin_ns = begin;
  done.busy_ns = now_ns() - begin;
  done.peaks = peaks_of(shard);
  return done;
}

std::vector<PeakMemory> peaks_of(const Shard& shard) {
  return {{shard.rank, shard.device->memory().peak_bytes(), resident_bytes()}};
}

MoveDone move_shard(Shard& shard, StepId step, const MoveOrder& order) {
  const trace::Span span{shard.device->track(), trace::name("move"),
                         step.value};
  MoveDone done;
  done.begin_ns = now_ns();
  shard.device->memory().begin_peak();
  auto& move = move_from(shard, order.source);
  const auto& follows = shard.worker->workflow.role(shard.replica.role).follows;
  if (follows) {
    done.checksum = blend_in(shard, move, *follows);
  } else {
    shard.engine->expect_weights();
    move.run(shard.engine->weights());
  }
  done.bytes = move.moved_bytes();
  done.wire_bytes = move.foreign_bytes(shard.worker->worker);
  shard.engine->weights_changed();
  done.busy_ns = now_ns() - done.begin_ns;
  done.peaks = peaks_of(shard);
  count_planes(shard);
  if (shard.worker->settings.run.check_moves && !follows)
    done.checksum = shard.engine->checksum();
  return done;
}

/// The move from a replica's layout to whole tensors here. Others' planes are
/// read where they are: weights stay as they are until the copy is done.
CopyDone copy_shard(Shard& shard, StepId step, const CopyOrder& order) {
  const trace::Span span{shard.device->track(), trace::name("copy"),
                         step.value};
  shard.engine->describe(shard.snapshot, order.moments);
  CopyDone done;
  for (const auto plane : lent_planes(shard)) {
    const bool weights = plane == models::Plane::weight;
    if (!weights && !order.moments)
      continue;
    const auto room = shard.snapshot.room(plane);
    whole_of(shard, plane).run(room);
    if (weights)
      done.bytes = room.size();
  }
  return done;
}

WriteDone write_shard(Shard& shard, StepId step, const WriteOrder& order) {
  const trace::Span span{shard.worker->writer->track(), trace::name("write"),
                         step.value};
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
