#include "models/parallel/ordered_collectives.hpp"

#include "models/kernels/device_access.hpp"
#include "net/collectives/collectives.hpp"
#include "net/collectives/stream_collectives.hpp"

namespace troupe::models {

namespace {

/// Calls call(calls, order...): with the group's calls on streams and their
/// order, or with the group alone once the device is idle.
template <class Call>
void in_order(net::Collectives& group, DeviceAccess& backend, TypedPtr memory,
              const Call& call) {
  if (net::StreamCollectives* streams = group.on_streams(memory.data()))
    return call(*streams, net::StreamOrder::in_line);
  backend.wait();
  call(group);
}

} // namespace

TypedPtr own_row(const net::Collectives& group, TypedPtr all,
                 std::int64_t count) {
  return all + group.rank() * count;
}

void sum_in_order(net::Collectives& group, DeviceAccess& backend, TypedPtr x,
                  std::int64_t count, const char* name) {
  in_order(group, backend, x, [&](auto& calls, auto... order) {
    calls.all_reduce_sum(x.data(), static_cast<std::size_t>(count), x.type(),
                         name, order...);
  });
}

void gather_in_order(net::Collectives& group, DeviceAccess& backend,
                     TypedPtr all, std::int64_t count, const char* name) {
  const TypedPtr own = own_row(group, all, count);
  in_order(group, backend, all, [&](auto& calls, auto... order) {
    calls.all_gather(own.data(), all.data(), static_cast<std::size_t>(count),
                     all.type(), name, order...);
  });
}

void scatter_sum_in_order(net::Collectives& group, DeviceAccess& backend,
                          TypedPtr all, std::int64_t count, const char* name) {
  const TypedPtr own = own_row(group, all, count);
  in_order(group, backend, all, [&](auto& calls, auto... order) {
    calls.reduce_scatter_sum(all.data(), own.data(),
                             static_cast<std::size_t>(count), all.type(), name,
                             order...);
  });
}

} // namespace troupe::models
