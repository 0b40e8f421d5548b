#include "net/peer_memory.hpp"

#include "net/data_plane.hpp"

#include <future>

namespace troupe::net {

namespace {

/// Where `worker` has its export `id`; nothing if it does not say.
std::optional<MemoryPlace> ask_place(DataPlane& plane, WorkerId worker,
                                     std::uint64_t id) {
  MemoryPlace place;
  std::promise<std::optional<Failure>> answered;
  plane.pull_memory(worker, place_id(id), 0,
                    std::as_writable_bytes(std::span{&place, 1}),
                    [&](std::optional<Failure> failure) {
                      answered.set_value(std::move(failure));
                    });
  const auto failure = answered.get_future().get();
  if (!failure)
    return place;
  if (failure->code != Errc::bug) // it answered: it exports no such place
    throw FailureError{*failure};
  return std::nullopt;
}

} // namespace

std::span<const std::byte> PeerMemory::find(DataPlane& plane, WorkerId worker,
                                            std::uint64_t id) {
  const std::lock_guard lock{mutex_};
  auto found = mapped_.find(id);
  if (found == mapped_.end()) {
    const auto place = ask_place(plane, worker, id);
    found
      = mapped_.emplace(id, place ? MappedPlace::open(*place) : std::nullopt)
          .first;
  }
  return found->second ? found->second->bytes() : std::span<const std::byte>{};
}

} // namespace troupe::net
