// A pull of memory over the data plane that the calling thread waits for: for
// files, which travel beside the run's work.
#pragma once

#include "net/data_plane/data_plane.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::actors {

/// Reads bytes from `offset` of memory `id` of a peer and waits until they are
/// all there. Throws FailureError.
void pull_bytes(net::DataPlane& data_plane, WorkerId from, std::uint64_t id,
                std::uint64_t offset, std::span<std::byte> into);

} // namespace troupe::actors
