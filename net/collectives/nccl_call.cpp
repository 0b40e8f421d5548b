#include "net/collectives/nccl_call.hpp"

#include "config/base/error.hpp"

#include <string>

namespace troupe::net {

namespace {

constexpr int nccl_sum = 0;
constexpr int nccl_refuses = 4; // ncclInvalidArgument

int pass_on(const NcclLibrary& library, const NcclCall& call, NcclPlace place,
            NcclCommunicator communicator, CudaStream stream) {
  const int type = nccl_type(call.dtype);
  const int peer = 1 - static_cast<int>(place.rank);
  return place.rank == call.root
           ? library.send(call.to, call.count, type, peer, communicator, stream)
           : library.receive(call.to, call.count, type, peer, communicator,
                             stream);
}

} // namespace

int nccl_type(DType dtype) {
  switch (dtype) {
  case DType::u8:
    return 1;
  case DType::i32:
    return 2;
  case DType::i64:
    return 4;
  case DType::f32:
    return 7;
  case DType::f64:
    return 8;
  case DType::bf16:
    return 9;
  default:
    throw InvariantError("no such numbers in a collective: "
                         + std::string(to_string(dtype)));
  }
}

int start_nccl_call(const NcclLibrary& library, const NcclCall& call,
                    NcclPlace place, NcclCommunicator communicator,
                    CudaStream stream) {
  const int type = nccl_type(call.dtype);
  switch (call.operation) {
  case GroupOperation::all_reduce:
    return library.all_reduce(call.from, call.to, call.count, type, nccl_sum,
                              communicator, stream);
  case GroupOperation::all_gather:
    return library.all_gather(call.from, call.to, call.count, type,
                              communicator, stream);
  case GroupOperation::reduce_scatter:
    return library.reduce_scatter(call.from, call.to, call.count, type,
                                  nccl_sum, communicator, stream);
  case GroupOperation::broadcast:
    if (place.size == 2)
      return pass_on(library, call, place, communicator, stream);
    return library.broadcast(call.to, call.to, call.count, type,
                             static_cast<int>(call.root), communicator, stream);
  case GroupOperation::barrier:
    break;
  }
  return nccl_refuses;
}

} // namespace troupe::net
