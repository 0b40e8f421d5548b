// The part of a move between hosts as one device runs it: NCCL sends from the
// planes of GPUs to those of others. Runs that are apart are packed into a
// bounded staging buffer of the device by 2D copies and unpacked likewise; all
// else is sent and received in place. What is bf16 on its way is rounded into
// staging memory by a kernel of its sender and widened by one of its receiver.
// Senders and receivers run it together (plans/weights/move_rounds.hpp).
#pragma once

#include "models/kernels/elementwise.hpp"
#include "models/kernels/typed_ptr.hpp"
#include "net/base/block_memory.hpp"
#include "net/collectives/collectives.hpp"
#include "plans/weights/move_rounds.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe::models {

/// The planes of one device, in its memory.
struct ExchangedPlanes {
  std::span<const std::byte> source; ///< empty if it sends nothing
  std::span<std::byte> target;       ///< empty if it receives nothing
};

/// Copies numbers of the device between types, as RowKernels::copy_box does.
using CopyNumbers
  = std::function<void(const BoxCopy&, ConstTypedPtr from, TypedPtr to)>;

class WeightExchange {
public:
  explicit WeightExchange(std::vector<plans::MoveRound> rounds);

  /// Sends and receives all pieces over the group of the plan's members, who
  /// all run it. `copy_numbers` is used if any are rounded. Throws
  /// FailureError.
  void run(net::Collectives& group, const net::BlockMemory& device,
           const ExchangedPlanes& planes,
           const CopyNumbers& copy_numbers = {}) const;
  std::uint64_t received_bytes() const { ///< as they are on their way
    return received_bytes_;
  }

private:
  std::vector<plans::MoveRound> rounds_;
  std::uint64_t staging_bytes_ = 0; ///< of the largest round
  std::uint64_t received_bytes_ = 0;
};

} // namespace troupe::models
