#include "net/data_plane/peer_memory.hpp"

#include "net/data_plane/data_plane.hpp"

#include <future>

namespace troupe::net {

namespace {

/// Returns the handle of export `id` of `worker`; nullopt if it publishes none.
std::optional<MemoryHandle> ask_place(DataPlane& plane, WorkerId worker,
                                      std::uint64_t id) {
  MemoryHandle place;
  std::promise<std::optional<Failure>> answered;
  plane.pull_memory(worker, handle_id(id), 0,
                    std::as_writable_bytes(std::span{&place, 1}),
                    [&](std::optional<Failure> failure) {
                      answered.set_value(std::move(failure));
                    });
  const auto failure = answered.get_future().get();
  if (!failure)
    return place;
  if (failure->code != Errc::bug) // it replied that it exports no such handle
    throw FailureError{*failure};
  return std::nullopt;
}

} // namespace

BlockBytes PeerMemory::find(DataPlane& plane, WorkerId worker, std::uint64_t id,
                            const BlockMemory* device) {
  const std::lock_guard lock{mutex_};
  auto found = mapped_.find(id);
  if (found == mapped_.end()) {
    const auto place = ask_place(plane, worker, id);
    found = mapped_
              .emplace(id, place ? MappedHandle::open(*place, device)
                                 : std::nullopt)
              .first;
  }
  return found->second ? found->second->block() : BlockBytes{};
}

} // namespace troupe::net
