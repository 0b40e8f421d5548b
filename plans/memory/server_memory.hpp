// Memory that servers of another program take on hosts (`rollout.engine`): the
// file that a server reads a version of the weights from, the copies of it
// while weights change, on CPUs the server's own weights, and its cache as far
// as its options say (server_cache.hpp). Of devices, what they say is theirs.
#pragma once

#include "plans/memory/call_memory.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace troupe::plans {

/// Bytes in the memory of the host that needs most.
struct ServerBytes {
  std::uint64_t files = 0; ///< whole models in fp32, one per server
  /// Beside them, in each rank of a server: while weights change, or for good
  /// if they are what adapters are added to.
  std::uint64_t updating = 0;
  std::uint64_t weights = 0; ///< that servers compute with
  std::uint64_t caches = 0;  ///< as far as known
  /// In the memory of a device beside those: the most, as far as known.
  std::uint64_t on_device = 0;

  /// Returns what the model alone decides.
  std::uint64_t of_model() const {
    return files + updating + weights;
  }
  std::uint64_t on_host() const {
    return of_model() + caches;
  }
};

/// Returns the bytes under `plan` by node, of nodes with servers. A role
/// without a shape counts as nothing. On devices with memory of their own,
/// servers have their weights there.
std::map<std::uint32_t, ServerBytes>
server_bytes_by_node(const Workflow& workflow, const ExecutionPlan& plan,
                     const std::map<std::string, ModelShape>& shapes,
                     const std::map<std::string, DType>& dtypes,
                     const BatchSizes& sizes);
/// Returns the same of the node with most; 0 if no server generates.
ServerBytes server_bytes(const Workflow& workflow, const ExecutionPlan& plan,
                         const std::map<std::string, ModelShape>& shapes,
                         const std::map<std::string, DType>& dtypes,
                         const BatchSizes& sizes);

/// Returns the bytes that a rank of the call's servers has in the memory of its
/// device; 0 if none serves it, or its options do not say.
std::uint64_t server_device_bytes(const Call& call, const ModelShape& shape,
                                  DType dtype, const Strategy& strategy,
                                  const BatchSizes& sizes);
/// Returns the tokens that the cache of the call's servers holds at most, if
/// that is certain.
std::optional<std::uint64_t> server_cache_tokens(const ModelShape& shape,
                                                 DType dtype,
                                                 const Strategy& strategy,
                                                 const BatchSizes& sizes);

} // namespace troupe::plans
