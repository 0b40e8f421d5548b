// Messages to the devices of a replica on one worker, as one: what the master
// sends and hears grows with the workers, not with the devices. Devices are in
// the order of the replica's mesh; orders that several of them have in common,
// such as those of tensor peers, are sent once.
#pragma once

#include "actors/protocol/message_parts.hpp"

namespace troupe::actors {

/// `order_of` a device that takes no part.
inline constexpr std::uint32_t no_order = 0xFFFF'FFFF;

template <class Order>
struct LocalMeshOrder {
  std::vector<Order> orders;
  std::vector<std::uint32_t> order_of; ///< index into `orders`, per device
};
template <class Inspector, class Order>
typename Inspector::result_type inspect(Inspector& f,
                                        LocalMeshOrder<Order>& x) {
  return f(caf::meta::type_name("LocalMeshOrder"), x.orders, x.order_of);
}

/// The replies of all devices; that of a device without an order is empty.
template <class Done>
struct LocalMeshDone {
  std::vector<Done> parts;
};
template <class Inspector, class Done>
typename Inspector::result_type inspect(Inspector& f, LocalMeshDone<Done>& x) {
  return f(caf::meta::type_name("LocalMeshDone"), x.parts);
}

} // namespace troupe::actors
