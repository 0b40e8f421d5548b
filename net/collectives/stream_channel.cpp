#include "net/collectives/stream_channel.hpp"

#include "config/base/error.hpp"
#include "net/collectives/collectives.hpp"

#include <utility>

namespace troupe::net {

StreamChannel::StreamChannel(ChannelGroups groups, const BlockMemory* memory)
  : memory_(memory),
    groups_(std::move(groups)) {
  TROUPE_CHECK(groups_.out->size() == 2 && groups_.in->size() == 2
                 && groups_.out->rank() == 0 && groups_.in->rank() == 1,
               "a channel has two ends");
}

/// Both ends connect the directions in the same order.
bool StreamChannel::connect(const void* data) {
  if (has_streams_)
    return *has_streams_;
  const auto connect_out = [&] { out_ = groups_.out->on_streams(data); };
  if (groups_.end == 0)
    connect_out();
  in_ = groups_.in->on_streams(data);
  if (groups_.end != 0)
    connect_out();
  has_streams_ = out_ != nullptr && in_ != nullptr;
  return *has_streams_;
}

void* StreamChannel::next_message(std::size_t size_bytes) {
  Message& message = messages_[next_];
  out_->join(std::exchange(message.sent, {}));
  message.size_bytes = size_bytes;
  if (message.block.size_bytes() < size_bytes) {
    message.block = PageBlock(); // frees the old one first
    message.block = memory_ == nullptr
                      ? PageBlock(size_bytes, PageSharing::none)
                      : PageBlock(size_bytes, *memory_);
  }
  return message.block.data();
}

void StreamChannel::send(const char* name) {
  Message& message = messages_[next_];
  next_ = (next_ + 1) % messages_.size();
  message.sent = out_->broadcast(message.block.data(), message.size_bytes,
                                 DType::u8, 0, name, StreamOrder::beside);
}

void StreamChannel::receive(void* data, std::size_t size_bytes,
                            const char* name) {
  in_->broadcast(data, size_bytes, DType::u8, 0, name, StreamOrder::in_line);
}

void StreamChannel::check() {
  if (!has_streams_.value_or(false))
    return;
  out_->check();
  in_->check();
}

void StreamChannel::compare() {
  if (!has_streams_.value_or(false))
    return;
  StreamCollectives* const first = groups_.end == 0 ? out_ : in_;
  first->compare();
  (first == out_ ? in_ : out_)->compare();
}

} // namespace troupe::net
