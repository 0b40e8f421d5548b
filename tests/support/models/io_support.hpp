// What tests of files share: the folder of golden data (TROUPE_SHARED) and a
// folder of one's own.
#pragma once

#include "tests/support/places.hpp"
#include "tests/support/temp_folder.hpp"

namespace troupe::testing {

using support::read_text;
using support::shared_folder;
using support::TempFolder;
using support::write_text;

} // namespace troupe::testing

/// Skips a golden test with the reason where the data is not there.
#define TROUPE_NEEDS_SHARED(folder)                                            \
  do {                                                                         \
    if (!std::filesystem::exists(folder))                                      \
      GTEST_SKIP() << "no golden data at " << (folder)                         \
                   << " (set TROUPE_SHARED)";                                  \
  } while (false)
