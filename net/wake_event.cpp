#include "net/wake_event.hpp"

#include "config/error.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace troupe::net {

WakeEvent::WakeEvent() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  TROUPE_CHECK(descriptor_ >= 0, "no descriptor for an event");
}

WakeEvent::~WakeEvent() {
  ::close(descriptor_);
}

void WakeEvent::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof(one));
}

void WakeEvent::clear() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(descriptor_, &count, sizeof(count));
}

} // namespace troupe::net
