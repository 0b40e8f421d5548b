// Memory that peers may read, by number; the copies of its Buffer count the
// running reads, so that withdraw() can wait for them. Thread-safe.
#pragma once

#include "net/base/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe::net {

class ExportTable {
public:
  /// Adds an export. Throws InvariantError if the number is in use.
  void add(std::uint64_t id, const void* data, std::uint64_t size_bytes,
           std::shared_ptr<void> keep_alive);
  /// Returns the whole memory; nullopt: no such number. The read is running as
  /// long as a copy of the Buffer, or of a slice, exists.
  std::optional<Buffer> read(std::uint64_t id);
  /// Removes an export and waits until no read of it is running.
  void withdraw(std::uint64_t id);

private:
  struct Export {
    std::shared_ptr<void> keep_alive;
    std::future<void> unread; ///< ready once no copy of `memory` exists
    Buffer memory;
  };

  std::mutex mutex_;
  std::map<std::uint64_t, Export> exports_;
};

} // namespace troupe::net
