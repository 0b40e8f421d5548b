// An exchange of pieces over a group of hosts, made of what every transport
// has: each member's pieces are one stream, of which all members gather a chunk
// at a time and keep what is theirs. Every byte goes to every member, so this
// is for small groups and for those without NCCL; the staging memory is
// bounded (kExchangeStagingBytes).
#pragma once

#include "net/base/block_memory.hpp"
#include "net/collectives/collectives.hpp"

namespace troupe::net {

/// Sends and receives the pieces, which are in `memory` or the host's; null:
/// all are the host's. Throws FailureError.
void exchange_over_gathers(Collectives& group, const Pieces& pieces,
                           const BlockMemory* memory, const char* name);

} // namespace troupe::net
