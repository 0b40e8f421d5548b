// An all-to-all of a group's members: each sends a run of bytes of its own size
// to each of the others, over a channel between each two of them (tokens to
// their experts). All members make the same exchanges in the same order, and
// both ends of a channel know the sizes. Names, deadlines and abort are those
// of the channels (I7).
#pragma once

#include "net/collectives/channel.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe::net {

class AllToAll {
public:
  /// Takes a channel to each member, by rank; this rank's own is null.
  AllToAll(std::vector<std::shared_ptr<Channel>> channels, std::uint32_t rank);

  std::uint32_t rank() const noexcept {
    return rank_;
  }
  std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(channels_.size());
  }
  /// Sends the i-th of `sizes_out` runs of `out` to rank i, and receives the
  /// run of each rank into `in`, in rank order. Sizes are in bytes; this rank's
  /// run is copied. Throws FailureError if a channel has failed.
  void exchange(const void* out, std::span<const std::size_t> sizes_out,
                void* in, std::span<const std::size_t> sizes_in,
                const char* name);

private:
  std::vector<std::shared_ptr<Channel>> channels_;
  std::uint32_t rank_;
};

} // namespace troupe::net
