#include "plans/memory_model.hpp"

#include "config/defaults.hpp"
#include "plans/layout.hpp"

#include <algorithm>

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
    return ceil_div(sizes_.samples_per_step, placement_.strategy.dp);
  }
  /// Packed tokens of one forward pass.
  std::uint64_t tokens() const {
    auto budget = unsigned_of(placement_.micro_batch_tokens);
    if (budget == 0)
      budget = unsigned_of(sizes_.micro_batch_tokens);
    if (budget == 0)
      budget = unsigned_of(defaults::micro_batch_tokens);
    const auto longest = unsigned_of(sizes_.max_sequence_tokens);
    return std::min(std::max(budget, longest), samples_a_rank() * longest);
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
    return tokens() * kept_a_token + 2 * logits_bytes(tokens());
  }
  std::uint64_t inference_bytes() const {
    return tokens() * layer_bytes() + logits_bytes(tokens());
  }
  std::uint64_t generate_bytes() const {
    const auto cached
      = samples_a_rank() * unsigned_of(sizes_.max_sequence_tokens);
    const auto cache
      = kv_cache_bytes(shape_, dtype_)
        / (std::uint64_t{placement_.strategy.pp} * placement_.strategy.tp);
    return cached * cache + logits_bytes(samples_a_rank())
           + tokens() * layer_bytes();
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

/// Weights of a replica and, where its role trains, gradients and optimizer.
void add_resident(const Replica& replica, const ModelShape& shape, DType dtype,
                  bool trains, std::vector<DeviceMemory>& devices) {
  const auto all = parameters(shape);
  const auto weights
    = make_layout(all, replica.strategy, replica.devices, dtype);
  const auto planes = make_layout(all, replica.strategy, replica.devices,
                                  DType::f32, Plane::optimizer);
  const std::uint64_t num_planes = dtype == DType::f32 ? 2 : 3;
  for (std::size_t i = 0; i < replica.devices.size(); ++i) {
    auto& device = devices.at(replica.devices[i].value);
    device.weight_bytes += weights.shards[i].size_bytes;
    if (!trains)
      continue;
    device.gradient_bytes += weights.shards[i].size_bytes;
    device.optimizer_bytes += num_planes * planes.shards[i].size_bytes;
  }
}

} // namespace

std::uint64_t layer_activation_bytes(const ModelShape& shape, DType dtype) {
  const auto hidden = unsigned_of(shape.hidden_size);
  const auto queries = unsigned_of(shape.num_heads * shape.head_dim);
  const auto keys = unsigned_of(shape.num_kv_heads * shape.head_dim);
  const auto inner = unsigned_of(shape.intermediate_size);
  // Layer input, its norm, the residual after attention, its norm; q and the
  // attention's output; k and v; gate, up and their product.
  return (4 * hidden + 2 * queries + 2 * keys + 3 * inner) * size_bytes(dtype);
}

std::uint64_t kv_cache_bytes(const ModelShape& shape, DType dtype) {
  return 2 * unsigned_of(shape.num_layers * shape.num_kv_heads * shape.head_dim)
         * size_bytes(dtype);
}

std::vector<DeviceMemory> device_memory(
  const Workflow& workflow, const ExecutionPlan& plan, const Replicas& replicas,
  const std::map<std::string, ModelShape>& shapes,
  const std::map<std::string, DType>& dtypes, const BatchSizes& sizes) {
  std::vector<DeviceMemory> devices;
  for (std::uint32_t rank = 0; rank < plan.cluster.num_devices(); ++rank)
    devices.push_back({.device = Rank{rank}});
  for (const auto& replica : replicas.all)
    if (const auto shape = shapes.find(replica.role); shape != shapes.end())
      add_resident(replica, shape->second, memory_dtype(dtypes, replica.role),
                   replica.home && workflow.role(replica.role).trained,
                   devices);
  for (const auto& call : workflow.calls) {
    const auto shape = shapes.find(call.role);
    if (shape == shapes.end())
      continue;
    const auto& placement = plan.calls.at(call.name);
    const CallMemory memory(shape->second, memory_dtype(dtypes, call.role),
                            placement, sizes);
    for (const auto rank : placement.devices)
      devices.at(rank.value)
        .tasks.push_back({call.name, memory.bytes(call.kind)});
  }
  return devices;
}

} // namespace troupe::plans
