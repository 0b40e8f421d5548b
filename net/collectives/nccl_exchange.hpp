// An exchange of pieces between GPUs: sends and receives of NCCL from the
// pieces' own memory to their own memory, without staging, in rounds of
// grouped calls.
#pragma once

#include "net/collectives/nccl_group.hpp"
#include "net/collectives/pieces.hpp"

namespace troupe::net {

/// Sends and receives the pieces, all in memory of GPUs; the members have
/// compared their lists. Throws FailureError.
void exchange_over_nccl(NcclGroup& group, const NcclLibrary& library,
                        const Pieces& pieces, NcclPlace place,
                        const char* name);

} // namespace troupe::net
