// What tests of files share: the folder of golden data (TROUPE_SHARED), a
// folder of one's own that goes with the test, whole files as text.
#pragma once

#include "tests/support/places.hpp"
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace troupe::models::testing {

using support::shared_folder;

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::filesystem::path& path,
                       const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A fresh empty folder, removed at the end of the scope.
class TempFolder {
public:
  TempFolder() {
    std::string name
      = (std::filesystem::temp_directory_path() / "troupe-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const {
    return path_;
  }
  std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }

private:
  std::filesystem::path path_;
};

} // namespace troupe::models::testing

/// Skips a golden test with the reason where the data is not there.
#define TROUPE_NEEDS_SHARED(folder)                                            \
  do {                                                                         \
    if (!std::filesystem::exists(folder))                                      \
      GTEST_SKIP() << "no golden data at " << (folder)                         \
                   << " (set TROUPE_SHARED)";                                  \
  } while (false)
