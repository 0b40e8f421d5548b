#include "net/collectives/channel.hpp"

#include "net/base/defaults.hpp"
#include "net/base/page_block.hpp"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::net {

namespace channel_internal {

struct ChannelMessage {
  std::vector<std::byte> bytes;
  PageBlock block; ///< has a message of the device, `bytes` one of the host
  std::size_t size_bytes = 0;
  const char* name = "";

  std::byte* data() {
    return block.data() != nullptr ? block.data() : bytes.data();
  }
};

/// Takes a buffer for reuse, or an empty one.
template <class T>
T take_idle(std::vector<T>& idle) {
  if (idle.empty())
    return {};
  T last = std::move(idle.back());
  idle.pop_back();
  return last;
}

} // namespace channel_internal

using channel_internal::ChannelMessage;

struct Channel::Impl {
  ChannelGroups groups;
  ChannelDevice device;
  std::optional<StreamChannel> streams;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<ChannelMessage> pending;       ///< the first is in flight
  std::vector<std::vector<std::byte>> idle; ///< buffers for reuse
  std::vector<PageBlock> idle_blocks;       ///< those of the device
  std::optional<Failure> failure;
  bool closing = false;
  std::thread sender;

  /// Returns a message with a copy of the bytes.
  ChannelMessage copy(const void* data, std::size_t size_bytes,
                      const char* name) {
    ChannelMessage message;
    message.size_bytes = size_bytes;
    message.name = name;
    if (device.memory == nullptr || !device.memory->owns(data)) {
      message.bytes = channel_internal::take_idle(idle);
      message.bytes.resize(size_bytes);
      std::memcpy(message.data(), data, size_bytes);
      return message;
    }
    message.block = channel_internal::take_idle(idle_blocks);
    if (message.block.size_bytes() < size_bytes) {
      message.block = PageBlock(); // frees the old one first
      message.block = PageBlock(size_bytes, *device.memory);
    }
    const ByteRuns whole{.bytes = size_bytes};
    device.memory->copy(data, message.data(), {&whole, 1});
    return message;
  }

  void keep_for_reuse(ChannelMessage& message) {
    if (message.block.data() != nullptr)
      idle_blocks.push_back(std::move(message.block));
    else
      idle.push_back(std::move(message.bytes));
  }

  void send_all() {
    if (device.enter)
      device.enter();
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return closing || !pending.empty(); });
      if (pending.empty())
        return;
      ChannelMessage& message = pending.front(); // not moved by push_back
      lock.unlock();
      try {
        groups.out->broadcast(message.data(), message.size_bytes, DType::u8, 0,
                              message.name);
      } catch (const FailureError& error) {
        lock.lock();
        failure = error.failure();
        changed.notify_all();
        return;
      }
      lock.lock();
      keep_for_reuse(message);
      pending.pop_front();
      changed.notify_all();
    }
  }
};

Channel::Channel(ChannelGroups groups, ChannelDevice device)
  : impl_(std::make_unique<Impl>()) {
  TROUPE_CHECK(groups.out->size() == 2 && groups.in->size() == 2
                 && groups.out->rank() == 0 && groups.in->rank() == 1,
               "a channel has two ends");
  impl_->groups = std::move(groups);
  if (device.streams.out != nullptr)
    impl_->streams.emplace(std::move(device.streams), device.memory);
  impl_->device = std::move(device);
  impl_->sender = std::thread([this] { impl_->send_all(); });
}

Channel::~Channel() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->closing = true;
    if (!impl_->pending.empty())
      impl_->groups.out->abort(
        {Errc::aborted, "channel", "closed with messages on their way", ""});
  }
  impl_->changed.notify_all();
  impl_->sender.join();
}

void Channel::send(const void* data, std::size_t bytes, const char* name) {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] {
    return impl_->failure || impl_->pending.size() < kMaxChannelMessages;
  });
  if (impl_->failure)
    throw FailureError(*impl_->failure);
  impl_->pending.push_back(impl_->copy(data, bytes, name));
  lock.unlock();
  impl_->changed.notify_all();
}

void Channel::receive(void* data, std::size_t bytes, const char* name) {
  impl_->groups.in->broadcast(data, bytes, DType::u8, 0, name);
}

StreamChannel* Channel::on_streams(const void* data) {
  const bool found = impl_->streams && impl_->streams->connect(data);
  return found ? &*impl_->streams : nullptr;
}

void Channel::check() {
  if (impl_->streams)
    impl_->streams->check();
}

void Channel::compare() {
  if (impl_->streams)
    impl_->streams->compare();
}

} // namespace troupe::net
