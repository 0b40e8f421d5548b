#include "net/base/wake_event.hpp"

#include "config/base/error.hpp"
#include "net/base/open_files.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace troupe::net {

WakeEvent::WakeEvent() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ >= 0)
    return;
  const std::string reason = std::strerror(errno);
  throw FailureError({Errc::io, "", "cannot make an event: " + reason,
                      why_no_open_file().value_or("")});
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
