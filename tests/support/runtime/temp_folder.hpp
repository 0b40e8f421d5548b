// A folder of its own for each test, gone afterwards.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace troupe::test {

class TempFolder {
public:
  TempFolder() {
    std::string name
      = (std::filesystem::temp_directory_path() / "troupe_test_XXXXXX")
          .string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::filesystem::path& path() const {
    return path_;
  }

private:
  std::filesystem::path path_;
};

inline void write_text(const std::filesystem::path& path,
                       const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

} // namespace troupe::test
