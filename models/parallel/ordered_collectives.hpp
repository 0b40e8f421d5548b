// Collectives in the order of a device's kernels: work of the thread's stream
// where the group has streams, else calls after the device is idle. Either way
// the kernels that follow read the result. Who reads on the host what came from
// them checks the group first, for whose calls on streams nobody waits.
#pragma once

#include "models/kernels/typed_ptr.hpp"

#include <cstdint>

namespace troupe::net {
class Collectives;
} // namespace troupe::net

namespace troupe::models {

class DeviceAccess;

/// All-reduces (sum) x [count], in the backend's memory.
void sum_in_order(net::Collectives& group, DeviceAccess& backend, TypedPtr x,
                  std::int64_t count, const char* name);
/// Returns this rank's row of all [ranks, count].
TypedPtr own_row(const net::Collectives& group, TypedPtr all,
                 std::int64_t count);
/// Fills all [ranks, count], in the backend's memory, of which this rank has
/// written its own row.
void gather_in_order(net::Collectives& group, DeviceAccess& backend,
                     TypedPtr all, std::int64_t count, const char* name);
/// Sums all [ranks, count] over the ranks into this rank's own row; other rows
/// are then undefined.
void scatter_sum_in_order(net::Collectives& group, DeviceAccess& backend,
                          TypedPtr all, std::int64_t count, const char* name);

} // namespace troupe::models
