// Counts what the ATen operations of a thread would cost on a GPU: kernels that
// are launched, bytes that these read and write, and copies between host and
// device, each of which stops the host. So the roofline is a test that needs no
// GPU. An operation whose parts launch kernels is counted by its parts, views
// and allocations cost nothing, and an operation that is in no list
// (aten_costs.hpp) is named, so that the lists stay right.
//
// Bytes are those of the tensors, once for each operation that takes them:
// nothing stays in a GPU's cache from one kernel to the next.
#pragma once

#include "net/base/block_memory.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace troupe::testing {

struct AtenCounts {
  std::int64_t launches = 0;
  std::int64_t bytes = 0;
  std::int64_t uploads = 0;   ///< copies from the host, which waits for each
  std::int64_t downloads = 0; ///< copies to the host, same
  std::int64_t queued = 0;    ///< copies from the host, which does not wait
  std::map<std::string, std::int64_t> by_name; ///< launches
  std::set<std::string> unknown;               ///< operations in no list

  /// Returns what these have beyond others, of which they have all.
  AtenCounts minus(const AtenCounts& others) const;
  /// Returns launches by name: "add 2, mm 4".
  std::string words() const;
};

/// Counts the operations of the calling thread while it exists; does not nest.
class AtenCounter {
public:
  AtenCounter();
  ~AtenCounter();
  AtenCounter(const AtenCounter&) = delete;
  AtenCounter& operator=(const AtenCounter&) = delete;

  const AtenCounts& counts() const {
    return counts_;
  }
  /// Counts kernels that are no operations of ATen on this device, if the
  /// calling thread counts.
  static void add(const char* name, std::int64_t launches, std::int64_t bytes);

private:
  AtenCounts counts_;
  std::uint64_t handle_; ///< of the callback
};

/// Returns memory of the host whose copies are counted as a device's.
const net::BlockMemory& counted_memory();

} // namespace troupe::testing
