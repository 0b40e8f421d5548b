#include "config/base/version.hpp"

#include <fmt/format.h>

namespace troupe {

std::string version_text() {
  return fmt::format("troupe {}.{}.{}", 0, 1, 0);
}

} // namespace troupe
