// One collective as NCCL is given it: by the group that waits for its calls
// (nccl_collectives.cpp) and by the one that does not (nccl_streams.hpp). A
// broadcast in a group of two is a send and a receive: pipeline stages, for
// which no ring of the group is made.
#pragma once

#include "config/base/dtype.hpp"
#include "net/collectives/group_control.hpp"
#include "net/collectives/nccl_group.hpp"
#include "net/collectives/nccl_library.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe::net {

struct NcclCall {
  GroupOperation operation = GroupOperation::all_reduce;
  const void* from = nullptr;
  void* to = nullptr; ///< of a broadcast all of it
  std::size_t count = 0;
  DType dtype = DType::f32;
  std::uint32_t root = 0;
};

/// Returns NCCL's number of the type. Throws InvariantError if it has none.
int nccl_type(DType dtype);
/// Starts the call on the stream; returns NCCL's result.
int start_nccl_call(const NcclLibrary& library, const NcclCall& call,
                    NcclPlace place, NcclCommunicator communicator,
                    CudaStream stream);

} // namespace troupe::net
