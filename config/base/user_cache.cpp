#include "config/base/user_cache.hpp"

#include <cstdlib>

namespace troupe {

std::filesystem::path user_cache_folder() {
  const auto* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0')
    return std::filesystem::path(cache) / "troupe";
  const auto* home = std::getenv("HOME");
  return home == nullptr || *home == '\0'
           ? std::filesystem::path{}
           : std::filesystem::path(home) / ".cache" / "troupe";
}

} // namespace troupe
