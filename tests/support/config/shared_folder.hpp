// Where the golden data lies: $TROUPE_SHARED, else beside the source tree.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace troupe::support {

inline std::filesystem::path shared_folder() {
  const char* folder = std::getenv("TROUPE_SHARED");
  return folder ? folder : TROUPE_SHARED_DEFAULT;
}

} // namespace troupe::support
