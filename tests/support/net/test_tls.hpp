// The certificate of a run that tests make up.
#pragma once

#include "net/tls.hpp"

#include <memory>

namespace troupe::test {

inline std::shared_ptr<const net::TlsContext> new_run_tls() {
  return std::make_shared<net::TlsContext>(net::make_run_certificate());
}

} // namespace troupe::test
