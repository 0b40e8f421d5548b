#include "net/collectives/host_group.hpp"

#include "net/base/buffer.hpp"
#include "net/collectives/host_exchange.hpp"
#include "net/collectives/reduce.hpp"

#include <string>

namespace troupe::net {

namespace {

/// The trace span of a call, if its group has a track and tracing is on.
class CallSpan {
public:
  CallSpan(const GroupSpec& spec, const char* name, std::size_t size_bytes)
    : open_(spec.track && trace::enabled()) {
    if (!open_)
      return;
    track_ = *spec.track;
    name_ = trace::name(name);
    trace::begin(track_, name_, 0, size_bytes);
  }
  ~CallSpan() {
    if (open_)
      trace::end(track_, name_);
  }
  CallSpan(const CallSpan&) = delete;
  CallSpan& operator=(const CallSpan&) = delete;

private:
  bool open_;
  trace::Track track_{};
  trace::Name name_{};
};

void check_sum(DType dtype, const char* name) {
  TROUPE_CHECK(can_sum(dtype), std::string(name) + ": no sums of "
                                 + std::string(to_string(dtype)));
}

} // namespace

ElementRange part_of(std::size_t count, std::size_t index, std::size_t parts,
                     std::size_t element_bytes) {
  const std::size_t line = kBufferAlignment / element_bytes;
  const std::size_t each
    = ((count + parts - 1) / parts + line - 1) / line * line;
  return {std::min(count, index * each), std::min(count, (index + 1) * each)};
}

HostCollectives::HostCollectives(GroupSpec spec) : spec_(std::move(spec)) {}

void HostCollectives::all_reduce_sum(void* data, std::size_t count, DType dtype,
                                     const char* name) {
  check_sum(dtype, name);
  const CallSpan span(spec_, name, count * size_bytes(dtype));
  do_all_reduce(static_cast<std::byte*>(data), {count, dtype, 0, name});
}

void HostCollectives::all_gather(const void* mine, void* all, std::size_t count,
                                 DType dtype, const char* name) {
  const CallSpan span(spec_, name, count * size_bytes(dtype) * size());
  do_all_gather(static_cast<const std::byte*>(mine),
                static_cast<std::byte*>(all), {count, dtype, 0, name});
}

void HostCollectives::reduce_scatter_sum(const void* all, void* mine,
                                         std::size_t count, DType dtype,
                                         const char* name) {
  check_sum(dtype, name);
  const CallSpan span(spec_, name, count * size_bytes(dtype) * size());
  do_reduce_scatter(static_cast<const std::byte*>(all),
                    static_cast<std::byte*>(mine), {count, dtype, 0, name});
}

void HostCollectives::broadcast(void* data, std::size_t count, DType dtype,
                                std::uint32_t root, const char* name) {
  TROUPE_CHECK(root < size(), std::string(name) + ": no rank "
                                + std::to_string(root) + " to send");
  const CallSpan span(spec_, name, count * size_bytes(dtype));
  do_broadcast(static_cast<std::byte*>(data), {count, dtype, root, name});
}

void HostCollectives::exchange(const Pieces& pieces, const char* name) {
  exchange_over_gathers(*this, pieces, nullptr, name);
}

void HostCollectives::barrier(const char* name) {
  const CallSpan span(spec_, name, 0);
  do_barrier({0, DType::u8, 0, name});
}

} // namespace troupe::net
