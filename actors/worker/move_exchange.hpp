// A device's part of the weights that a move sends between hosts over NCCL: the
// group of all devices that send or receive in it, and the rounds of this one.
// Senders take part on their device thread as receivers do: a move is a task of
// the devices of both replicas, so none of them has another one meanwhile.
#pragma once

#include "actors/worker/shard_actor.hpp"
#include "config/base/dtype.hpp"
#include "models/parallel/weight_exchange.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace troupe::actors {

/// Returns whether bytes between hosts may go by NCCL: from GPU to GPU, as they
/// are. Every device of both replicas finds the same.
bool may_exchange(const Shard& shard, const MoveEnds& ends);
/// Returns the type in which the move brings weights that products read: bf16
/// if the target only computes with them in bf16, else fp32. Every device of
/// both replicas finds the same.
DType moved_type(const Shard& shard, const MoveEnds& ends);
/// Returns whether each of these devices has NCCL and a GPU of its own. If not,
/// their move goes another way.
bool can_exchange(const Shard& shard, std::span<const Rank> members);

class MoveExchange {
public:
  /// Joins the group of the transfers, all between hosts, which can exchange.
  /// `shard`, one of its members, outlives this.
  MoveExchange(const Shard& shard, const MoveEnds& ends,
               const std::vector<plans::Transfer>& between);
  /// Sends what the device holds of the source and writes what it receives to
  /// `target`, empty if it is no target.
  void run(StepId step, std::span<std::byte> target);
  std::uint64_t received_bytes() const {
    return exchange_.received_bytes();
  }

private:
  const Shard* shard_;
  MoveEnds ends_;
  std::shared_ptr<net::Collectives> group_;
  models::WeightExchange exchange_;
};

} // namespace troupe::actors
