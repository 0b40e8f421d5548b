#include "plans/memory_model.hpp"

#include "config/defaults.hpp"
#include "plans/layout.hpp"
#include "plans/micro_batches.hpp"
#include "plans/replica_life.hpp"
#include "plans/unit_windows.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::plans {

namespace {

std::uint64_t unsigned_of(std::int64_t number) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0));
}

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

/// What one call needs while it runs, on each of its devices.
class CallMemory {
public:
  CallMemory(const ModelShape& shape, DType dtype, const Placement& placement,
             const BatchSizes& sizes)
    : shape_(shape),
      dtype_(dtype),
      placement_(placement),
      sizes_(sizes) {}

  std::uint64_t bytes(CallKind kind) const {
    if (kind == CallKind::generate)
      return generate_bytes();
    return kind == CallKind::train ? train_bytes() : inference_bytes();
  }

private:
  std::uint64_t samples_a_rank() const {
    const auto chunks
      = static_cast<std::uint64_t>(std::max(1, placement_.chunks));
    return ceil_div(sizes_.samples_per_step, chunks * placement_.strategy.dp);
  }
  /// Packed tokens of one forward pass, at the longest.
  std::uint64_t tokens(CallKind kind) const {
    const auto longest = static_cast<double>(
      std::max<std::int64_t>(1, sizes_.max_sequence_tokens));
    const auto batches = micro_batches_of(kind, placement_, sizes_, longest);
    return static_cast<std::uint64_t>(std::ceil(batches.samples) * longest);
  }
  std::uint64_t layers() const {
    return ceil_div(unsigned_of(shape_.num_layers), placement_.strategy.pp);
  }
  /// fp32 logits of `rows` positions; a scalar head has one number a position.
  std::uint64_t logits_bytes(std::uint64_t rows) const {
    const auto width = shape_.scalar_head ? 1 : unsigned_of(shape_.vocab_size);
    return rows * width * size_bytes(DType::f32) / placement_.strategy.tp;
  }
  std::uint64_t layer_bytes() const {
    return layer_activation_bytes(shape_, dtype_) / placement_.strategy.tp;
  }
  std::uint64_t input_bytes() const {
    return unsigned_of(shape_.hidden_size) * size_bytes(dtype_);
  }

  std::uint64_t train_bytes() const {
    const auto kept_a_token = sizes_.recompute_activations
                                ? layers() * input_bytes() + layer_bytes()
                                : layers() * layer_bytes();
    return tokens(CallKind::train) * kept_a_token
           + 2 * logits_bytes(tokens(CallKind::train));
  }
  std::uint64_t inference_bytes() const {
    const auto count = tokens(CallKind::inference);
    return count * layer_bytes() + logits_bytes(count);
  }
  /// Prompts go through in passes of the default size.
  std::uint64_t prefill_tokens() const {
    const auto longest = unsigned_of(sizes_.max_sequence_tokens);
    const auto budget = unsigned_of(defaults::micro_batch_tokens);
    return std::min(std::max(budget, longest), samples_a_rank() * longest);
  }
  /// One answer at least: less than that fails.
  std::uint64_t generate_bytes() const {
    const auto cache
      = unsigned_of(sizes_.max_sequence_tokens) * kv_cache_bytes(shape_, dtype_)
        / (std::uint64_t{placement_.strategy.pp} * placement_.strategy.tp);
    auto under_way = samples_a_rank();
    if (sizes_.max_sequences > 0)
      under_way = std::min<std::uint64_t>(under_way, sizes_.max_sequences);
    if (sizes_.kv_cache_bytes > 0 && cache > 0)
      under_way
        = std::clamp<std::uint64_t>(sizes_.kv_cache_bytes / cache, 1,
                                    std::max<std::uint64_t>(under_way, 1));
    return under_way * cache + logits_bytes(under_way)
           + prefill_tokens() * layer_bytes();
  }

  const ModelShape& shape_;
  DType dtype_;
  const Placement& placement_;
  const BatchSizes& sizes_;
};

DType memory_dtype(const std::map<std::string, DType>& dtypes,
                   const std::string& role) {
  const auto found = dtypes.find(role);
  return found == dtypes.end() ? DType::f32 : found->second;
}

/// Adds up what each device holds and needs.
class MemoryBook {
public:
  MemoryBook(const Workflow& workflow, const ExecutionPlan& plan,
             const Replicas& replicas,
             const std::map<std::string, ModelShape>& shapes,
             const std::map<std::string, DType>& dtypes,
             const BatchSizes& sizes)
    : workflow_(workflow),
      plan_(plan),
      replicas_(replicas),
      shapes_(shapes),
      dtypes_(dtypes),
      sizes_(sizes) {
    for (std::uint32_t rank = 0; rank < plan.cluster.num_devices(); ++rank)
      devices_.push_back({.device = Rank{rank}});
  }

  std::vector<DeviceMemory> add_up() {
    for (const auto& call : workflow_.calls)
      if (shapes_.contains(call.role))
        add_call(call);
    for (const auto& replica : replicas_.all)
      if (shapes_.contains(replica.role))
        add_replica(replica);
    return std::move(devices_);
  }

private:
  void add_call(const Call& call) {
    const auto& placement = plan_.calls.at(call.name);
    const CallMemory memory(shapes_.at(call.role),
                            memory_dtype(dtypes_, call.role), placement,
                            sizes_);
    const auto bytes = memory.bytes(call.kind);
    for (const auto rank : placement.devices)
      devices_.at(rank.value).tasks.push_back({call.name, bytes});
  }

  static void add_to_task(DeviceMemory& device, const std::string& name,
                          std::uint64_t bytes) {
    for (auto& task : device.tasks)
      task.bytes += task.task == name ? bytes : 0;
  }

  /// `bytes` for every task on the device from the replica's first reader to
  /// its last one, and for the move that brings them.
  void add_transient(const Replica& replica, DeviceMemory& device,
                     std::uint64_t bytes) {
    const auto& last = replica.calls.back();
    bool reads = false;
    for (const auto& call : workflow_.calls) {
      reads = reads || call.name == replica.calls.front();
      if (reads)
        add_to_task(device, call.name, bytes);
      if (call.name == last)
        break;
    }
    device.tasks.push_back(
      {replica.name(), bytes + std::min(bytes, move_staging_bytes)});
  }

  void add_training(const Replica& replica, DeviceMemory& device,
                    const StageBytes& stage) {
    device.gradient_bytes += stage.weights;
    if (!leaves(workflow_, plan_, replica).offload_optimizer)
      device.optimizer_bytes += stage.optimizer;
    else
      for (const auto& name : replica.calls)
        if (workflow_.call(name).kind == CallKind::train)
          add_to_task(device, name, stage.optimizer);
  }

  void add_replica(const Replica& replica) {
    const auto stages = stage_bytes(shapes_.at(replica.role), replica.strategy,
                                    memory_dtype(dtypes_, replica.role));
    const bool dropped = is_dropped(workflow_, plan_, replica);
    const bool offloaded = leaves(workflow_, plan_, replica).offload_weights;
    const bool trains = replica.home && workflow_.role(replica.role).trained;
    for (std::size_t i = 0; i < replica.devices.size(); ++i) {
      auto& device = devices_.at(replica.devices[i].value);
      const auto& stage = stages.at(
        coordinate_of(replica.strategy, static_cast<std::uint32_t>(i)).pp);
      if (dropped)
        add_transient(replica, device, stage.weights);
      else if (!offloaded)
        device.weight_bytes += stage.weights;
      else
        for (const auto& call : replica.calls)
          add_to_task(device, call, stage.weights);
      if (trains)
        add_training(replica, device, stage);
      if (workflow_.role(replica.role).follows)
        device.tasks.push_back(
          {replica.name(), std::min(stage.weights, move_staging_bytes)});
    }
  }

  const Workflow& workflow_;
  const ExecutionPlan& plan_;
  const Replicas& replicas_;
  const std::map<std::string, ModelShape>& shapes_;
  const std::map<std::string, DType>& dtypes_;
  const BatchSizes& sizes_;
  std::vector<DeviceMemory> devices_;
};

} // namespace

std::uint64_t layer_activation_bytes(const ModelShape& shape, DType dtype) {
  const auto hidden = unsigned_of(shape.hidden_size);
  const auto queries = unsigned_of(shape.num_heads * shape.head_dim);
  const auto keys = unsigned_of(shape.num_kv_heads * shape.head_dim);
  const auto inner
    = unsigned_of(shape.intermediate_size)
      * std::max<std::uint64_t>(1, unsigned_of(shape.experts_per_token));
  const auto router = unsigned_of(shape.num_experts) * size_bytes(DType::f32);
  // Layer input, its norm, the residual after attention, its norm; q and the
  // attention's output; k and v; gate, up and their product, of each expert of
  // a token; the router's logits.
  return (4 * hidden + 2 * queries + 2 * keys + 3 * inner) * size_bytes(dtype)
         + router;
}

std::uint64_t kv_cache_bytes(const ModelShape& shape, DType dtype) {
  return 2 * unsigned_of(shape.num_layers * shape.num_kv_heads * shape.head_dim)
         * size_bytes(dtype);
}

std::vector<StageBytes> stage_bytes(const ModelShape& shape,
                                    const Strategy& strategy, DType dtype) {
  const auto all = parameters(shape);
  const auto weights = largest_shards(all, strategy, dtype, Plane::weight);
  const auto planes
    = largest_shards(all, strategy, DType::f32, Plane::optimizer);
  const auto windows = window_bytes(all, strategy, dtype);
  const std::uint64_t num_planes = dtype == DType::f32 ? 2 : 3;
  std::vector<StageBytes> stages(weights.size());
  for (std::size_t i = 0; i < stages.size(); ++i)
    stages[i] = {weights[i] + windows[i], num_planes * planes[i]};
  return stages;
}

std::uint64_t active_bytes(CallKind kind, const ModelShape& shape, DType dtype,
                           const Placement& placement,
                           const BatchSizes& sizes) {
  return CallMemory(shape, dtype, placement, sizes).bytes(kind);
}

std::vector<DeviceMemory> device_memory(
  const Workflow& workflow, const ExecutionPlan& plan, const Replicas& replicas,
  const std::map<std::string, ModelShape>& shapes,
  const std::map<std::string, DType>& dtypes, const BatchSizes& sizes) {
  return MemoryBook(workflow, plan, replicas, shapes, dtypes, sizes).add_up();
}

} // namespace troupe::plans
