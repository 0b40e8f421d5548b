#include "net/exports.hpp"

#include "config/error.hpp"

namespace troupe::net {

void ExportTable::add(std::uint64_t id, const void* data,
                      std::uint64_t size_bytes,
                      std::shared_ptr<void> keep_alive) {
  Export entry;
  // Only ever read: Buffer has no const form.
  entry.data = static_cast<std::byte*>(const_cast<void*>(data));
  entry.size_bytes = size_bytes;
  entry.keep_alive = std::move(keep_alive);
  std::lock_guard lock(mutex_);
  TROUPE_CHECK(exports_.emplace(id, std::move(entry)).second,
               "memory " + std::to_string(id) + " is exported already");
}

std::optional<Buffer> ExportTable::read(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  auto found = exports_.find(id);
  if (found == exports_.end() || found->second.withdrawn)
    return std::nullopt;
  Export& entry = found->second;
  ++entry.readers;
  std::shared_ptr<void> owner(entry.data, [self = shared_from_this(), id](
                                            void*) { self->read_ended(id); });
  return Buffer(std::move(owner), entry.data, entry.size_bytes);
}

void ExportTable::read_ended(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  --exports_.at(id).readers;
  changed_.notify_all();
}

void ExportTable::withdraw(std::uint64_t id) {
  std::unique_lock lock(mutex_);
  auto found = exports_.find(id);
  if (found == exports_.end())
    return;
  found->second.withdrawn = true;
  changed_.wait(lock, [&] { return found->second.readers == 0; });
  const std::shared_ptr<void> freed = std::move(found->second.keep_alive);
  exports_.erase(found);
  lock.unlock(); // `freed` may free gigabytes: not under the lock
}

} // namespace troupe::net
