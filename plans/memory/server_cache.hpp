// The memory that servers set aside for keys and values (`rollout.engine`), by
// the options of the command that starts them. That is the user's text: what
// cannot be read in it counts as not known, and nothing is counted then.
#pragma once

#include <cstdint>

namespace troupe {
struct Settings;
}

namespace troupe::plans {

/// Bytes of each rank of a server.
struct ServerCache {
  std::uint64_t host_bytes = 0; ///< cache in the host's memory
  /// Cache in the memory of its device, beside its weights.
  std::uint64_t device_bytes = 0;
  /// All that it has in the memory of its device: weights, cache and what
  /// computing takes.
  std::uint64_t device_limit = 0;
  bool own_dtype = false; ///< elements are not of the model's dtype

  bool is_known() const {
    return host_bytes > 0 || device_bytes > 0 || device_limit > 0;
  }
};

/// Returns what servers that the run starts set aside, on devices with
/// `device_bytes` of memory (0: not known); nothing for those that run already.
/// Throws ConfigError for a share of a device's memory that no server takes.
ServerCache server_cache(const Settings& settings, std::uint64_t device_bytes);

} // namespace troupe::plans
