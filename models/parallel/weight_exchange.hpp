// The part of a move between hosts as one device runs it: NCCL sends from the
// planes of GPUs to those of others. Runs that are apart are packed into a
// bounded staging buffer of the device by 2D copies and unpacked likewise; all
// else is sent and received in place. Senders and receivers run it together
// (plans/weights/move_rounds.hpp).
#pragma once

#include "net/base/block_memory.hpp"
#include "net/collectives/collectives.hpp"
#include "plans/weights/move_rounds.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::models {

/// The planes of one device, in its memory.
struct ExchangedPlanes {
  std::span<const std::byte> source; ///< empty if it sends nothing
  std::span<std::byte> target;       ///< empty if it receives nothing
};

class WeightExchange {
public:
  explicit WeightExchange(std::vector<plans::MoveRound> rounds);

  /// Sends and receives all pieces over the group of the plan's members, who
  /// all run it. Throws FailureError.
  void run(net::Collectives& group, const net::BlockMemory& device,
           const ExchangedPlanes& planes) const;
  std::uint64_t received_bytes() const {
    return received_bytes_;
  }

private:
  std::vector<plans::MoveRound> rounds_;
  std::uint64_t staging_bytes_ = 0; ///< of the largest round
  std::uint64_t received_bytes_ = 0;
};

} // namespace troupe::models
