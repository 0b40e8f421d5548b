#include "net/collectives/channel.hpp"

#include "net/base/defaults.hpp"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::net {

namespace channel_internal {

struct ChannelMessage {
  std::vector<std::byte> bytes;
  const char* name = "";
};

} // namespace channel_internal

using channel_internal::ChannelMessage;

struct Channel::Impl {
  std::shared_ptr<Collectives> out;
  std::shared_ptr<Collectives> in;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<ChannelMessage> pending;       ///< the first is in flight
  std::vector<std::vector<std::byte>> idle; ///< buffers for reuse
  std::optional<Failure> failure;
  bool closing = false;
  std::thread sender;

  void send_all() {
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return closing || !pending.empty(); });
      if (pending.empty())
        return;
      ChannelMessage& message = pending.front(); // not moved by push_back
      lock.unlock();
      try {
        out->broadcast(message.bytes.data(), message.bytes.size(), DType::u8, 0,
                       message.name);
      } catch (const FailureError& error) {
        lock.lock();
        failure = error.failure();
        changed.notify_all();
        return;
      }
      lock.lock();
      idle.push_back(std::move(message.bytes));
      pending.pop_front();
      changed.notify_all();
    }
  }
};

Channel::Channel(std::shared_ptr<Collectives> out,
                 std::shared_ptr<Collectives> in)
  : impl_(std::make_unique<Impl>()) {
  TROUPE_CHECK(out->size() == 2 && in->size() == 2 && out->rank() == 0
                 && in->rank() == 1,
               "a channel has two ends");
  impl_->out = std::move(out);
  impl_->in = std::move(in);
  impl_->sender = std::thread([this] { impl_->send_all(); });
}

Channel::~Channel() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->closing = true;
    if (!impl_->pending.empty())
      impl_->out->abort(
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
  ChannelMessage message;
  if (!impl_->idle.empty()) {
    message.bytes = std::move(impl_->idle.back());
    impl_->idle.pop_back();
  }
  message.bytes.resize(bytes);
  std::memcpy(message.bytes.data(), data, bytes);
  message.name = name;
  impl_->pending.push_back(std::move(message));
  lock.unlock();
  impl_->changed.notify_all();
}

void Channel::receive(void* data, std::size_t bytes, const char* name) {
  impl_->in->broadcast(data, bytes, DType::u8, 0, name);
}

} // namespace troupe::net
