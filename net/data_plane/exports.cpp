#include "net/data_plane/exports.hpp"

#include "config/base/error.hpp"

#include <cstring>

namespace troupe::net {

void ExportTable::add(std::uint64_t id, const ExportedMemory& exported,
                      std::shared_ptr<void> keep_alive) {
  const auto unread = std::make_shared<std::promise<void>>();
  // only ever read: Buffer has no const form
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(exported.data));
  std::shared_ptr<void> owner(bytes, [unread, keep_alive](void*) mutable {
    keep_alive.reset(); // the withdrawing thread frees it, no reader
    unread->set_value();
  });
  Export entry{std::move(keep_alive), unread->get_future(),
               Buffer(std::move(owner), bytes, exported.size_bytes),
               exported.memory};
  std::lock_guard lock(mutex_);
  TROUPE_CHECK(exports_.try_emplace(id, std::move(entry)).second,
               "memory " + std::to_string(id) + " is exported already");
}

std::optional<ExportTable::Found> ExportTable::read(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  auto found = exports_.find(id);
  if (found == exports_.end())
    return std::nullopt;
  return Found{found->second.bytes, found->second.memory};
}

void ExportTable::Found::copy(std::uint64_t offset, std::uint64_t size_bytes,
                              std::byte* to) const {
  const Buffer from = bytes.slice(offset, size_bytes);
  if (memory != nullptr)
    memory->read(from.data(), to, size_bytes);
  else
    std::memcpy(to, from.data(), size_bytes);
}

void ExportTable::withdraw(std::uint64_t id) {
  std::unique_lock lock(mutex_);
  auto taken = exports_.extract(id);
  lock.unlock(); // freeing may concern gigabytes: not under the lock
  if (taken.empty())
    return;
  taken.mapped().bytes = {};
  taken.mapped().unread.wait();
}

} // namespace troupe::net
