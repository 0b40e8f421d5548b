#include "models/parallel/weight_exchange.hpp"

#include "net/base/memory_count.hpp"
#include "net/base/page_block.hpp"

#include <algorithm>
#include <utility>

namespace troupe::models {

namespace {

/// Copies the pieces that go through staging memory from one side to the other.
/// The kernels that round or widen may still run when it returns.
class StagedPieces {
public:
  StagedPieces(const net::BlockMemory& device, const CopyNumbers& copy_numbers)
    : device_(device),
      copy_numbers_(copy_numbers) {}

  void pack(std::span<const plans::MovePiece> pieces, const std::byte* plane,
            std::byte* staging) const {
    copy(pieces, {plane, DType::f32}, {staging, DType::bf16});
  }
  void unpack(std::span<const plans::MovePiece> pieces,
              const std::byte* staging, std::byte* plane) const {
    copy(pieces, {staging, DType::bf16}, {plane, DType::f32});
  }

private:
  /// The types are those of rounded pieces.
  void copy(std::span<const plans::MovePiece> pieces, ConstTypedPtr from,
            TypedPtr to) const {
    std::vector<ByteRuns> bytes;
    for (const plans::MovePiece& piece : pieces)
      if (piece.rounded)
        copy_rounded(piece.runs, from, to);
      else if (!piece.in_place)
        bytes.push_back(piece.runs);
    if (!bytes.empty())
      device_.copy(from.data(), to.data(), bytes);
  }

  void copy_rounded(const ByteRuns& runs, ConstTypedPtr from,
                    TypedPtr to) const {
    const auto numbers = [](std::uint64_t bytes, DType type) {
      return static_cast<std::int64_t>(bytes / size_bytes(type));
    };
    copy_numbers_(
      {.sizes = {1, 1, static_cast<std::int64_t>(runs.runs),
                 numbers(runs.bytes, DType::f32)},
       .from_strides = {0, 0, numbers(runs.source_stride, from.type())},
       .to_strides = {0, 0, numbers(runs.target_stride, to.type())}},
      from + numbers(runs.source_offset, from.type()),
      to + numbers(runs.target_offset, to.type()));
  }

  const net::BlockMemory& device_;
  const CopyNumbers& copy_numbers_;
};

bool any_rounded(std::span<const plans::MovePiece> pieces) {
  return std::ranges::any_of(pieces, &plans::MovePiece::rounded);
}

/// Waits for what the device still does to the memory: NCCL's stream does not.
void wait_for_device(const net::BlockMemory& device, const void* data) {
  device.copy(data, const_cast<void*>(data), {});
}

void exchange_round(net::Collectives& group, const plans::MoveRound& round,
                    const ExchangedPlanes& planes, std::byte* staging) {
  std::vector<net::SentPiece> sent;
  for (const plans::MovePiece& piece : round.sent)
    sent.push_back({piece.peer,
                    piece.in_place
                      ? planes.source.data() + piece.runs.source_offset
                      : staging + piece.runs.target_offset,
                    piece.wire_bytes()});
  std::vector<net::ReceivedPiece> received;
  for (const plans::MovePiece& piece : round.received)
    received.push_back({piece.peer,
                        piece.in_place
                          ? planes.target.data() + piece.runs.target_offset
                          : staging + piece.runs.source_offset,
                        piece.wire_bytes()});
  group.exchange({sent, received}, "weights between hosts");
}

} // namespace

WeightExchange::WeightExchange(std::vector<plans::MoveRound> rounds)
  : rounds_(std::move(rounds)) {
  for (const plans::MoveRound& round : rounds_) {
    staging_bytes_ = std::max(staging_bytes_, round.staged_bytes);
    for (const plans::MovePiece& piece : round.received)
      received_bytes_ += piece.wire_bytes();
  }
}

void WeightExchange::run(net::Collectives& group,
                         const net::BlockMemory& device,
                         const ExchangedPlanes& planes,
                         const CopyNumbers& copy_numbers) const {
  net::PageBlock staging;
  net::MemoryCharge charge;
  if (staging_bytes_ > 0) {
    charge.set(staging_bytes_);
    staging = net::PageBlock(staging_bytes_, device);
    wait_for_device(device, staging.data());
  }
  if (!planes.target.empty())
    wait_for_device(device, planes.target.data());
  const StagedPieces staged(device, copy_numbers);
  for (const plans::MoveRound& round : rounds_) {
    staged.pack(round.sent, planes.source.data(), staging.data());
    if (any_rounded(round.sent))
      wait_for_device(device, staging.data());
    exchange_round(group, round, planes, staging.data());
    staged.unpack(round.received, staging.data(), planes.target.data());
    if (any_rounded(round.received)) // the next round overwrites it
      wait_for_device(device, staging.data());
  }
}

} // namespace troupe::models
