#include "net/base/buffer_pool.hpp"

#include <bit>
#include <map>
#include <mutex>
#include <vector>

namespace troupe::net {

struct BufferPool::State {
  std::uint64_t max_idle_bytes = 0;
  std::mutex mutex;
  std::map<std::size_t, std::vector<Buffer>> idle; ///< by size class
  std::uint64_t idle_bytes = 0;

  void give_back(Buffer block) {
    std::lock_guard lock(mutex);
    if (idle_bytes + block.size_bytes() > max_idle_bytes)
      return;
    idle_bytes += block.size_bytes();
    idle[block.size_bytes()].push_back(std::move(block));
  }
};

namespace {

constexpr std::size_t kSmallestPooledBytes = 4096;

/// Returns the size class: four per power of two.
std::size_t pool_class_bytes(std::size_t size_bytes) {
  if (size_bytes <= kSmallestPooledBytes)
    return kSmallestPooledBytes;
  const std::size_t step = std::bit_floor(size_bytes - 1) / 4;
  return (size_bytes + step - 1) / step * step;
}

} // namespace

BufferPool::BufferPool(std::uint64_t max_idle_bytes)
  : state_(std::make_shared<State>()) {
  state_->max_idle_bytes = max_idle_bytes;
}

Buffer BufferPool::take(std::size_t size_bytes) {
  if (size_bytes == 0)
    return {};
  const std::size_t class_bytes = pool_class_bytes(size_bytes);
  Buffer block;
  {
    std::lock_guard lock(state_->mutex);
    std::vector<Buffer>& idle = state_->idle[class_bytes];
    if (!idle.empty()) {
      block = std::move(idle.back());
      idle.pop_back();
      state_->idle_bytes -= class_bytes;
    }
  }
  if (block.empty())
    block = make_buffer(class_bytes);
  std::byte* data = block.data();
  std::weak_ptr<State> pool = state_;
  std::shared_ptr<void> owner(data, [pool, block](void*) mutable {
    if (auto state = pool.lock())
      state->give_back(std::move(block));
  });
  return {std::move(owner), data, size_bytes};
}

std::uint64_t BufferPool::idle_bytes() const {
  std::lock_guard lock(state_->mutex);
  return state_->idle_bytes;
}

} // namespace troupe::net
