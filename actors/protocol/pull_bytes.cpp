#include "actors/protocol/pull_bytes.hpp"

#include <future>
#include <optional>

namespace troupe::actors {

void pull_bytes(net::DataPlane& data_plane, WorkerId from, std::uint64_t id,
                std::uint64_t offset, std::span<std::byte> into) {
  std::promise<std::optional<Failure>> ended;
  data_plane.pull_memory(
    from, id, offset, into,
    [&](std::optional<Failure> failure) { ended.set_value(failure); });
  if (const auto failure = ended.get_future().get())
    throw FailureError{*failure};
}

} // namespace troupe::actors
