// Where tests and benchmarks find files that are not theirs: the golden data
// and the source tree. The one object that knows absolute paths of a build, so
// that the others are the same in every tree and come from the compiler cache.
#pragma once

#include <filesystem>

namespace troupe::support {

/// $TROUPE_SHARED, else `shared` beside the source tree.
std::filesystem::path shared_folder();
std::filesystem::path source_folder();

} // namespace troupe::support
