// A certificate of a run, generated for tests.
#pragma once

#include "net/transport/tls.hpp"

#include <memory>

namespace troupe::test {

inline std::shared_ptr<const net::TlsContext> new_run_tls() {
  return std::make_shared<net::TlsContext>(net::make_run_certificate());
}

} // namespace troupe::test
