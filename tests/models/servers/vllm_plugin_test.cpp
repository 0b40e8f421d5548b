#include "models/servers/vllm_plugin.hpp"

#include <gtest/gtest.h>

#include "tests/support/places.hpp"
#include "tests/support/temp_folder.hpp"

#include <fstream>
#include <iterator>
#include <string>

namespace troupe::models {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(VllmPlugin, AFolderForPythonHasEachOfItsSources) {
  const support::TempFolder folder;
  write_vllm_plugin(folder / "plugin");
  const auto sources = support::source_folder() / "models/servers/vllm_plugin";
  int count = 0;
  for (const auto& source : std::filesystem::directory_iterator(sources)) {
    if (source.path().extension() != ".py")
      continue;
    ++count;
    const auto name = source.path().filename();
    EXPECT_EQ(text_of(folder / "plugin" / name), text_of(source.path()))
      << name;
  }
  EXPECT_GE(count, 2);
}

} // namespace
} // namespace troupe::models
