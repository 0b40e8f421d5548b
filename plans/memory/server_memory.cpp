#include "plans/memory/server_memory.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Returns the parameters that a server is sent, the first time where there are
/// adapters.
std::uint64_t num_sent(const ModelShape& shape) {
  auto count = num_parameters(shape);
  for (const auto& adapter : adapters(shape))
    count += static_cast<std::uint64_t>(adapter.num_elements());
  return count;
}

/// Returns what one server of a call takes on its host.
ServerBytes bytes_of_server(const ModelShape& shape, DType dtype,
                            const Strategy& strategy, const BatchSizes& sizes) {
  const auto file = num_sent(shape) * size_bytes(DType::f32);
  return {.files = file,
          .updating = strategy.tp * file,
          .weights
          = sizes.engine.serves_on_host ? weight_bytes(shape, dtype) : 0,
          .caches = strategy.tp * sizes.engine.cache.host_bytes};
}

void add_server(const ServerBytes& one, ServerBytes& sum) {
  sum.files += one.files;
  sum.updating += one.updating;
  sum.weights += one.weights;
  sum.caches += one.caches;
  sum.on_device = std::max(sum.on_device, one.on_device);
}

} // namespace

std::map<std::uint32_t, ServerBytes>
server_bytes_by_node(const Workflow& workflow, const ExecutionPlan& plan,
                     const std::map<std::string, ModelShape>& shapes,
                     const std::map<std::string, DType>& dtypes,
                     const BatchSizes& sizes) {
  std::map<std::uint32_t, ServerBytes> by_node;
  for (const auto& call : workflow.calls) {
    const auto shape = shapes.find(call.role);
    const auto placed = plan.calls.find(call.name);
    if (!is_served(call, sizes) || shape == shapes.end()
        || placed == plan.calls.end())
      continue;
    const auto known = dtypes.find(call.role);
    const auto dtype = known == dtypes.end() ? DType::f32 : known->second;
    const auto& devices = placed->second.devices;
    const auto& strategy = placed->second.strategy;
    auto one = bytes_of_server(shape->second, dtype, strategy, sizes);
    one.on_device
      = server_device_bytes(call, shape->second, dtype, strategy, sizes);
    for (std::uint32_t i = 0; i < devices.size(); ++i)
      if (coordinate_of(strategy, i).tp == 0)
        add_server(one, by_node[plan.cluster.node_of(devices[i])]);
  }
  return by_node;
}

ServerBytes server_bytes(const Workflow& workflow, const ExecutionPlan& plan,
                         const std::map<std::string, ModelShape>& shapes,
                         const std::map<std::string, DType>& dtypes,
                         const BatchSizes& sizes) {
  ServerBytes most;
  for (const auto& [node, bytes] :
       server_bytes_by_node(workflow, plan, shapes, dtypes, sizes))
    if (bytes.on_host() > most.on_host())
      most = bytes;
  return most;
}

std::uint64_t server_device_bytes(const Call& call, const ModelShape& shape,
                                  DType dtype, const Strategy& strategy,
                                  const BatchSizes& sizes) {
  const auto& cache = sizes.engine.cache;
  if (!is_served(call, sizes))
    return 0;
  if (cache.device_limit > 0)
    return cache.device_limit;
  return cache.device_bytes == 0
           ? 0
           : cache.device_bytes + weight_bytes(shape, dtype) / strategy.tp;
}

std::optional<std::uint64_t> server_cache_tokens(const ModelShape& shape,
                                                 DType dtype,
                                                 const Strategy& strategy,
                                                 const BatchSizes& sizes) {
  const auto& cache = sizes.engine.cache;
  // layers with a window keep fewer tokens
  if (!cache.is_known() || cache.own_dtype || shape.sliding_window > 0)
    return std::nullopt;
  const auto weights = weight_bytes(shape, dtype) / strategy.tp;
  const auto bytes
    = cache.device_limit > 0
        ? cache.device_limit - std::min(cache.device_limit, weights)
        : std::max(cache.host_bytes, cache.device_bytes);
  const auto heads = std::max<std::uint64_t>(
    1, static_cast<std::uint64_t>(shape.num_kv_heads) / strategy.tp);
  const auto per_token
    = 2 * heads * static_cast<std::uint64_t>(shape.num_layers)
      * static_cast<std::uint64_t>(shape.head_dim) * size_bytes(dtype);
  return per_token > 0 ? std::optional(bytes / per_token) : std::nullopt;
}

} // namespace troupe::plans
