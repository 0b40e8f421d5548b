// The way from a worker to the files of the master's host, which its own host
// does not share. An interface, so that what uses it is tested without network.
#pragma once

#include "actors/protocol/file_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::actors {

/// Each call waits for its end; throws FailureError.
class FileExchange {
public:
  virtual ~FileExchange() = default;
  /// Returns the files that the master serves, by number.
  virtual std::vector<SharedFile> open() = 0;
  /// Reads bytes of file `number`.
  virtual void read(std::uint64_t number, std::uint64_t offset,
                    std::span<std::byte> into)
    = 0;
  /// Makes the master take `bytes`; the order has file and kind.
  virtual void give(TakeFileOrder order, std::span<const std::byte> bytes) = 0;
};

} // namespace troupe::actors
