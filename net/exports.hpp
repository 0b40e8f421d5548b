// Memory that peers may read, by number; the copies of its Buffer count the
// reads that still run, so that withdraw() can wait for them. Thread-safe.
#pragma once

#include "net/buffer.hpp"

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
  /// Throws InvariantError when the number is in use.
  void add(std::uint64_t id, const void* data, std::uint64_t size_bytes,
           std::shared_ptr<void> keep_alive);
  /// All of it; empty: no such number. The read runs as long as a copy of the
  /// Buffer lives, or a slice of one.
  std::optional<Buffer> read(std::uint64_t id);
  /// Removes it and waits until no read of it runs.
  void withdraw(std::uint64_t id);

private:
  struct Export {
    std::shared_ptr<void> keep_alive;
    std::future<void> unread; ///< nobody holds `memory` any more
    Buffer memory;
  };

  std::mutex mutex_;
  std::map<std::uint64_t, Export> exports_;
};

} // namespace troupe::net
