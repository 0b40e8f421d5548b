// Collectives of hosts on the memory of a device: numbers are copied to the
// host, combined there and written back. What a group of GPUs without NCCL
// uses, and devices of tests whose memory the host cannot address.
#pragma once

#include "net/base/block_memory.hpp"
#include "net/collectives/collectives.hpp"

#include <memory>

namespace troupe::net {

/// Returns the group for pointers into `memory` and to the host's memory.
std::shared_ptr<Collectives>
make_staged_collectives(std::shared_ptr<Collectives> host,
                        const BlockMemory& memory);

} // namespace troupe::net
