// Shared by tests of files: the folder of golden data and a folder of one's
// own.
#pragma once

#include "tests/support/places.hpp"
#include "tests/support/temp_folder.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::testing {

using support::golden_folder;
using support::golden_rows;
using support::read_text;
using support::TempFolder;
using support::write_text;

inline std::size_t lines_of(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

/// The folders of tokenizers/ of the golden data, sorted.
inline std::vector<std::string> golden_tokenizers() {
  std::vector<std::string> names;
  const auto folder = golden_folder() / "tokenizers";
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

} // namespace troupe::testing

/// Skips a golden test with the reason where the second opinion is absent; the
/// golden data of the source tree is always there.
#define TROUPE_NEEDS_DATA(folder)                                              \
  do {                                                                         \
    if (::troupe::support::second_opinion()                                    \
        && !std::filesystem::exists(folder))                                   \
      GTEST_SKIP() << "no golden data at " << (folder)                         \
                   << " (set TROUPE_SHARED)";                                  \
  } while (false)
