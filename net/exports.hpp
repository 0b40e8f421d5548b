// Memory that peers may read, by number; counts the reads that still run so
// that withdraw() can wait for them. Thread-safe.
#pragma once

#include "net/buffer.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe::net {

class ExportTable : public std::enable_shared_from_this<ExportTable> {
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
    std::byte* data = nullptr;
    std::uint64_t size_bytes = 0;
    std::shared_ptr<void> keep_alive;
    std::size_t readers = 0;
    bool withdrawn = false;
  };
  void read_ended(std::uint64_t id);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Export> exports_;
};

} // namespace troupe::net
