// Gloo's all-reduce, which the benchmark of collectives runs beside ours. Gloo
// is in libtorch and its headers are in a Debian package: only gloo_peer.cpp
// includes them, and a build without them links gloo_absent.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::bench {

/// One rank of a Gloo group over loopback.
class GlooPeer {
public:
  /// Returns true if this build has Gloo. Call it before there are other
  /// threads: it sets the environment variables that Gloo reads.
  static bool is_here();

  /// Members meet in `file`, which no earlier group may have used.
  GlooPeer(const std::string& file, std::uint32_t rank, std::uint32_t ranks);
  void all_reduce_sum(float* data, std::size_t count);

private:
  struct Group;
  std::shared_ptr<Group> group_;
};

} // namespace troupe::bench
