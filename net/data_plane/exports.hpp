// Memory that peers may read, by number; the copies of its Buffer count the
// running reads, so that withdraw() can wait for them. Thread-safe.
#pragma once

#include "net/base/block_memory.hpp"
#include "net/base/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe::net {

struct ExportedMemory {
  const void* data = nullptr;
  std::uint64_t size_bytes = 0;
  const BlockMemory* memory = nullptr; ///< null: the host's
};

class ExportTable {
public:
  /// Adds an export. Throws InvariantError if the number is in use.
  void add(std::uint64_t id, const ExportedMemory& exported,
           std::shared_ptr<void> keep_alive);

  struct Found {
    Buffer bytes; ///< the whole memory
    const BlockMemory* memory = nullptr;

    /// Copies a range to host memory. Throws InvariantError if it is out of
    /// bounds.
    void copy(std::uint64_t offset, std::uint64_t size_bytes,
              std::byte* to) const;
  };
  /// Returns nullopt if there is no such number. The read is running as long as
  /// a copy of the Buffer, or of a slice, exists.
  std::optional<Found> read(std::uint64_t id);
  /// Removes an export and waits until no read of it is running.
  void withdraw(std::uint64_t id);

private:
  struct Export {
    std::shared_ptr<void> keep_alive;
    std::future<void> unread; ///< ready once no copy of `bytes` exists
    Buffer bytes;
    const BlockMemory* memory = nullptr;
  };

  std::mutex mutex_;
  std::map<std::uint64_t, Export> exports_;
};

} // namespace troupe::net
