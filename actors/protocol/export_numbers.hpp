// The numbers under which a process exports memory to its data plane: a few
// bits say what it is, so that no two kinds ever meet. Below them, whose it is.
#pragma once

#include "net/data_plane/peer_memory.hpp"

#include <cstdint>

namespace troupe::actors {

/// The first of the two bits that count a shard's planes (0: weights).
inline constexpr unsigned plane_export_bit = 60;
/// A slot of a snapshot; the two bits below say which slot, and whether it is a
/// copy of another host's.
inline constexpr std::uint64_t snapshot_export = std::uint64_t{1} << 58;
inline constexpr unsigned snapshot_copy_bit = 57;
inline constexpr unsigned snapshot_slot_bit = 56;
/// A file, or a piece of one, of a host that shares none.
inline constexpr std::uint64_t file_export = std::uint64_t{1} << 62;

static_assert(snapshot_export != net::handle_id(0));
static_assert(file_export > (std::uint64_t{3} << plane_export_bit));

} // namespace troupe::actors
