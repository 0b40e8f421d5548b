#include "deferred_copies.hpp"

#include "deferred_backend.hpp"
#include "far_memory.hpp"

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe::testing {

/// The locked blocks of a process and the copies that still use memory.
struct DeferredCopies {
  std::recursive_mutex mutex;
  std::map<void*, std::size_t> locked; ///< bytes, by address
  std::multimap<const void*, std::shared_ptr<class DeferredCopy>> kept;

  static DeferredCopies& instance() {
    static auto& only
      = *new DeferredCopies; // memory is freed until the very end
    return only;
  }
};

class DeferredCopy final : public net::PendingCopy,
                           public std::enable_shared_from_this<DeferredCopy> {
public:
  DeferredCopy(const void* from, void* to, std::size_t size_bytes)
    : from_(from),
      to_(to),
      size_bytes_(size_bytes) {}

  void before_kernels() override {
    DeferredBackend::instance().later(
      [self = shared_from_this()] { self->run(); });
  }
  void wait() override {
    DeferredBackend::instance().wait();
    run();
  }

private:
  void run() {
    const std::lock_guard lock(DeferredCopies::instance().mutex);
    if (std::exchange(is_done_, true))
      return;
    const FarMemory::Reach reach(deferred_memory());
    std::memcpy(to_, from_, size_bytes_);
  }

  const void* from_;
  void* to_;
  std::size_t size_bytes_;
  bool is_done_ = false;
};

namespace {

std::shared_ptr<net::PendingCopy> start_deferred_copy(const void* from,
                                                      void* to,
                                                      std::size_t size_bytes,
                                                      net::PendingCopy* after) {
  if (after != nullptr)
    after->wait();
  return std::make_shared<DeferredCopy>(from, to, size_bytes);
}

} // namespace

FarMemory& deferred_memory() {
  static auto* memory = new FarMemory; // blocks may outlive other statics
  return *memory;
}

const net::CopyStream& deferred_copies() {
  static constexpr net::CopyStream copies{
    [](void* data, std::size_t size_bytes) {
      DeferredCopies& all = DeferredCopies::instance();
      const std::lock_guard lock(all.mutex);
      all.locked[data] = size_bytes;
      return true;
    },
    [](void* data) {
      DeferredCopies& all = DeferredCopies::instance();
      const std::lock_guard lock(all.mutex);
      all.locked.erase(data);
    },
    &start_deferred_copy, &start_deferred_copy,
    [](void* block, net::PendingCopy& copy) {
      DeferredCopies& all = DeferredCopies::instance();
      const std::lock_guard lock(all.mutex);
      all.kept.emplace(block,
                       static_cast<DeferredCopy&>(copy).shared_from_this());
    }};
  return copies;
}

void finish_deferred_copies(const void* block) {
  DeferredCopies& all = DeferredCopies::instance();
  std::vector<std::shared_ptr<DeferredCopy>> found;
  {
    const std::lock_guard lock(all.mutex);
    const auto [begin, end] = all.kept.equal_range(block);
    for (auto at = begin; at != end; ++at)
      found.push_back(at->second);
    all.kept.erase(begin, end);
  }
  for (const auto& copy : found)
    copy->wait();
}

std::size_t deferred_locked_bytes() {
  DeferredCopies& all = DeferredCopies::instance();
  const std::lock_guard lock(all.mutex);
  std::size_t bytes = 0;
  for (const auto& [data, size_bytes] : all.locked)
    bytes += size_bytes;
  return bytes;
}

} // namespace troupe::testing
