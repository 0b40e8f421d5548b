#include "models/parallel/weight_exchange.hpp"

#include "net/base/memory_count.hpp"
#include "net/base/page_block.hpp"

#include <algorithm>
#include <utility>

namespace troupe::models {

namespace {

/// Returns the runs that go through the staging memory.
std::vector<ByteRuns> staged_runs(std::span<const plans::MovePiece> pieces) {
  std::vector<ByteRuns> runs;
  for (const plans::MovePiece& piece : pieces)
    if (!piece.in_place)
      runs.push_back(piece.runs);
  return runs;
}

/// Waits for what the device still does to the memory: NCCL's stream does not.
void wait_for_device(const net::BlockMemory& device, const void* data) {
  device.copy(data, const_cast<void*>(data), {});
}

void exchange_round(net::Collectives& group, const plans::MoveRound& round,
                    const ExchangedPlanes& planes, std::byte* staging) {
  std::vector<net::SentPiece> sent;
  for (const auto& [peer, runs, in_place] : round.sent)
    sent.push_back({peer,
                    in_place ? planes.source.data() + runs.source_offset
                             : staging + runs.target_offset,
                    runs.total_bytes()});
  std::vector<net::ReceivedPiece> received;
  for (const auto& [peer, runs, in_place] : round.received)
    received.push_back({peer,
                        in_place ? planes.target.data() + runs.target_offset
                                 : staging + runs.source_offset,
                        runs.total_bytes()});
  group.exchange({sent, received}, "weights between hosts");
}

} // namespace

WeightExchange::WeightExchange(std::vector<plans::MoveRound> rounds)
  : rounds_(std::move(rounds)) {
  for (const plans::MoveRound& round : rounds_) {
    staging_bytes_ = std::max(staging_bytes_, round.staged_bytes);
    for (const plans::MovePiece& piece : round.received)
      received_bytes_ += piece.runs.total_bytes();
  }
}

void WeightExchange::run(net::Collectives& group,
                         const net::BlockMemory& device,
                         const ExchangedPlanes& planes) const {
  net::PageBlock staging;
  net::MemoryCharge charge;
  if (staging_bytes_ > 0) {
    charge.set(staging_bytes_);
    staging = net::PageBlock(staging_bytes_, device);
    wait_for_device(device, staging.data());
  }
  if (!planes.target.empty())
    wait_for_device(device, planes.target.data());
  for (const plans::MoveRound& round : rounds_) {
    if (const auto packed = staged_runs(round.sent); !packed.empty())
      device.copy(planes.source.data(), staging.data(), packed);
    exchange_round(group, round, planes, staging.data());
    if (const auto landed = staged_runs(round.received); !landed.empty())
      device.copy(staging.data(), planes.target.data(), landed);
  }
}

} // namespace troupe::models
