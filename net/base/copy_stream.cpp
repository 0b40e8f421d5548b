#include "net/base/copy_stream.hpp"

#include "config/base/log.hpp"

#include <exception>
#include <string>

namespace troupe::net {

void finish_copy(const std::shared_ptr<PendingCopy>& copy) noexcept {
  try {
    if (copy)
      copy->wait();
  } catch (const std::exception& error) {
    log::net.error(std::string("a copy of a device's memory failed: ")
                   + error.what());
  }
}

} // namespace troupe::net
