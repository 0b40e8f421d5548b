// Large blocks of a device, read or written chunk by chunk through two
// page-locked halves of bounded size: while the host uses one, the device
// copies the other. So planes go to files, checkpoints and digests at the rate
// of the slower of the two, without host memory of their size.
#pragma once

#include "net/base/block_memory.hpp"

#include <cstddef>
#include <functional>
#include <span>

namespace troupe::net {

inline constexpr std::size_t staging_half_bytes = std::size_t{16} << 20;

/// Takes a chunk of what is read; `offset` is its place in the block.
using TakeChunk
  = std::function<void(std::span<const std::byte> chunk, std::size_t offset)>;
/// Fills a chunk; returns false if there is no more.
using FillChunk
  = std::function<bool(std::span<std::byte> chunk, std::size_t offset)>;

/// Hands out a block in order, after all kernels so far.
void read_staged(const BlockMemory& memory, std::span<const std::byte> from,
                 const TakeChunk& take,
                 std::size_t half_bytes = staging_half_bytes);
/// Overwrites a block in order, between kernels before and after. Returns false
/// if `fill` did, with what was filled before in the block.
bool write_staged(const BlockMemory& memory, std::span<std::byte> to,
                  const FillChunk& fill,
                  std::size_t half_bytes = staging_half_bytes);

/// Copies a block to host memory that is not page-locked, after all kernels so
/// far; one of more than two halves is staged.
void read_block(const BlockMemory& memory, std::span<const std::byte> from,
                std::byte* to, std::size_t half_bytes = staging_half_bytes);
/// Copies a block from such memory likewise, between kernels before and after.
void write_block(const BlockMemory& memory, const std::byte* from,
                 std::span<std::byte> to,
                 std::size_t half_bytes = staging_half_bytes);

} // namespace troupe::net
