#include "config/base/error.hpp"
#include "models/io/mapped_file.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/io_support.hpp"

#include <filesystem>
#include <numeric>
#include <string>

namespace troupe::models {
namespace {

namespace fs = std::filesystem;

/// Maps a file of many pages, cuts it, and reads it.
void read_cut_file(const fs::path& path) {
  testing::write_text(path, std::string(std::size_t{1} << 20, 'a'));
  const MappedFile gone(path);
  { const MappedFile other(path); }
  fs::resize_file(path, 10);
  const auto text = gone.text();
  const auto sum = std::accumulate(text.begin(), text.end(), 0);
  std::exit(sum == 0 ? 1 : 0);
}

TEST(MappedFileDeathTest, OneThatIsCutEndsTheProcessWithItsName) {
  const troupe::testing::TempFolder folder;
  EXPECT_EXIT(
    read_cut_file(folder / "model.safetensors"),
    ::testing::ExitedWithCode(static_cast<int>(ExitCode::wrong_input)),
    "error: .*model.safetensors: became shorter while it was read");
}

} // namespace
} // namespace troupe::models
