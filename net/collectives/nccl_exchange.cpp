#include "net/collectives/nccl_exchange.hpp"

#include "net/base/defaults.hpp"
#include "net/collectives/piece_rounds.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace troupe::net {

namespace {

constexpr int nccl_bytes = 1;      // ncclUint8
constexpr int nccl_cuda_error = 1; // ncclUnhandledCudaError
constexpr int nccl_goes_on = 7;    // ncclInProgress
constexpr int cuda_on_device = 3;  // cudaMemcpyDeviceToDevice

/// The calls of one round of a member.
class RoundCalls {
public:
  RoundCalls(const NcclLibrary& library, const PieceRound& round,
             std::uint32_t rank)
    : library_(library),
      round_(round),
      rank_(rank) {}

  int start(NcclCommunicator communicator, CudaStream stream) const {
    const int copied = copy_own(stream);
    return copied != 0 ? copied : pass(communicator, stream);
  }

private:
  /// Copies the parts that go from this member to itself.
  int copy_own(CudaStream stream) const {
    std::vector<SentPiece> own;
    std::ranges::copy_if(
      round_.sent, std::back_inserter(own),
      [&](const SentPiece& part) { return part.peer == rank_; });
    std::size_t next = 0;
    for (const ReceivedPiece& part : round_.received)
      if (part.peer == rank_
          && library_.blocks.copy(part.data, own.at(next++).data, part.bytes,
                                  cuda_on_device, stream)
               != 0)
        return nccl_cuda_error;
    return 0;
  }

  /// Starts all sends and receives together: in a row they would wait for each
  /// other.
  int pass(NcclCommunicator communicator, CudaStream stream) const {
    int error = library_.groups.begin_calls();
    const auto note = [&](int result) {
      if (error == 0 && result != nccl_goes_on)
        error = result;
    };
    for (const ReceivedPiece& part : round_.received)
      if (part.peer != rank_)
        note(library_.receive(part.data, part.bytes, nccl_bytes,
                              static_cast<int>(part.peer), communicator,
                              stream));
    for (const SentPiece& part : round_.sent)
      if (part.peer != rank_)
        note(library_.send(part.data, part.bytes, nccl_bytes,
                           static_cast<int>(part.peer), communicator, stream));
    const int ended = library_.groups.end_calls();
    return error != 0 ? error : ended;
  }

  const NcclLibrary& library_;
  const PieceRound& round_;
  std::uint32_t rank_;
};

} // namespace

/// Pairs do not wait for other pairs between rounds: the round of a part is the
/// same at both ends, so the members of the lowest round can always go on.
void exchange_over_nccl(NcclGroup& group, const NcclLibrary& library,
                        const Pieces& pieces, NcclPlace place,
                        const char* name) {
  const RoundLimits limits{
    std::max<std::size_t>(1, kNcclGroupCalls / place.size), kNcclGroupBytes};
  for (const PieceRound& round : cut_into_rounds(pieces, limits))
    group.run(name, [&](NcclCommunicator communicator, CudaStream stream) {
      return RoundCalls(library, round, place.rank).start(communicator, stream);
    });
}

} // namespace troupe::net
