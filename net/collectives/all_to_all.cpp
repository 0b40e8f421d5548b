#include "net/collectives/all_to_all.hpp"

#include "config/base/error.hpp"

#include <cstring>

namespace troupe::net {

AllToAll::AllToAll(std::vector<std::shared_ptr<Channel>> channels,
                   std::uint32_t rank)
  : channels_(std::move(channels)),
    rank_(rank) {
  TROUPE_CHECK(rank < channels_.size(), "a rank outside the group");
  for (std::uint32_t i = 0; i < channels_.size(); ++i)
    TROUPE_CHECK((channels_[i] == nullptr) == (i == rank),
                 "a channel to every other member");
}

/// Channels copy what they send and return, so that all may send before they
/// receive. Each member begins with its successor: nobody is sent to by all at
/// once.
void AllToAll::exchange(const void* out, std::span<const std::size_t> sizes_out,
                        void* in, std::span<const std::size_t> sizes_in,
                        const char* name) {
  TROUPE_CHECK(sizes_out.size() == size() && sizes_in.size() == size()
                 && sizes_out[rank_] == sizes_in[rank_],
               "a size for every member");
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  auto* source = static_cast<const std::byte*>(out);
  auto* target = static_cast<std::byte*>(in);
  for (std::uint32_t i = 0; i < size(); ++i) {
    from.push_back(source);
    to.push_back(target);
    source += sizes_out[i];
    target += sizes_in[i];
  }
  for (std::uint32_t step = 1; step < size(); ++step) {
    const std::uint32_t peer = (rank_ + step) % size();
    if (sizes_out[peer] > 0)
      channels_[peer]->send(from[peer], sizes_out[peer], name);
  }
  if (sizes_out[rank_] > 0)
    std::memcpy(to[rank_], from[rank_], sizes_out[rank_]);
  for (std::uint32_t step = 1; step < size(); ++step) {
    const std::uint32_t peer = (rank_ + size() - step) % size();
    if (sizes_in[peer] > 0)
      channels_[peer]->receive(to[peer], sizes_in[peer], name);
  }
}

} // namespace troupe::net
