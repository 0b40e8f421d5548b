// Files that are made of others, once per state of the other.
#include "config/base/error.hpp"
#include "models/data/row_cache.hpp"

#include "tests/support/models/io_support.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <string>

namespace troupe::models {
namespace {

namespace fs = std::filesystem;
using testing::read_text;
using testing::TempFolder;
using testing::write_text;

class RowCache : public ::testing::Test {
protected:
  fs::path file(const std::string& state, const std::string& text) {
    return cached_file(folder_.path(),
                       {.source = "/data/a.gz", .state = state, .name = "a"},
                       [&](const fs::path& target) {
                         ++made_;
                         write_text(target, text);
                       });
  }
  TempFolder folder_;
  int made_ = 0;
};

TEST_F(RowCache, AFileIsMadeOncePerState) {
  const auto first = file("1", "one");
  EXPECT_EQ(file("1", "another"), first);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(read_text(first), "one");
  EXPECT_EQ(file("2", "two"), first) << "the old one is replaced";
  EXPECT_EQ(read_text(first), "two");
  EXPECT_EQ(made_, 2);
}

TEST_F(RowCache, TheEntrySaysSizeAndChecksum) {
  const auto made = file("1", "one");
  const auto entry
    = nlohmann::json::parse(read_text(made.parent_path() / "entry.json"));
  EXPECT_EQ(entry.at("source"), "/data/a.gz");
  EXPECT_EQ(entry.at("bytes"), 3);
  EXPECT_EQ(entry.at("crc32"), 0x7A6C86F1U);
}

/// Writes a file in place of another whose entry this process has not seen.
TEST_F(RowCache, DamagedBytesAreMadeAgain) {
  const CachedSource source{.source = "/data/b.gz", .state = "1", .name = "b"};
  const auto at = cached_path(folder_.path(), source);
  write_text(at, "onx");
  write_text(at.parent_path() / "entry.json",
             R"({"source": "/data/b.gz", "state": "1", "bytes": 3, "crc32": )"
               + std::to_string(0x7A6C86F1U) + "}");
  const auto made
    = cached_file(folder_.path(), source,
                  [](const fs::path& target) { write_text(target, "one"); });
  EXPECT_EQ(read_text(made), "one");
}

TEST_F(RowCache, NothingIsLeftOfWhatFailed) {
  const auto fail = [&] {
    cached_file(folder_.path(),
                {.source = "/data/c.gz", .state = "1", .name = "c"},
                [](const fs::path& target) {
                  write_text(target, "half");
                  throw ConfigError(Place{"c.gz", 0}, "is damaged");
                });
  };
  EXPECT_THROW(fail(), ConfigError);
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
    EXPECT_TRUE(entry.is_directory()) << entry.path();
}

} // namespace
} // namespace troupe::models
