#include "tests/support/places.hpp"

#include <cstdlib>

namespace troupe::support {

std::filesystem::path shared_folder() {
  const char* given = std::getenv("TROUPE_SHARED");
  return given != nullptr ? std::filesystem::path(given)
                          : source_folder() / "../shared";
}

std::filesystem::path source_folder() {
  return TROUPE_SOURCE_DIR;
}

} // namespace troupe::support
