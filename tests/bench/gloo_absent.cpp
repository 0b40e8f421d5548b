#include "gloo_peer.hpp"

#include <stdexcept>

namespace troupe::bench {

bool GlooPeer::is_here() {
  return false;
}

GlooPeer::GlooPeer(const std::string&, std::uint32_t, std::uint32_t) {
  throw std::logic_error("this build has no Gloo");
}

void GlooPeer::all_reduce_sum(float*, std::size_t) {}

} // namespace troupe::bench
