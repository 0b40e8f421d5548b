#include "net/child_programs/child_log.hpp"

#include <fstream>
#include <system_error>

namespace troupe::net {

std::uintmax_t size_of_log(const std::filesystem::path& log) {
  std::error_code none;
  const auto bytes = std::filesystem::file_size(log, none);
  return none ? 0 : bytes;
}

std::string last_line_of(const std::filesystem::path& log,
                         std::uintmax_t begin) {
  std::ifstream text(log);
  text.seekg(static_cast<std::streamoff>(begin));
  std::string last;
  for (std::string line; std::getline(text, line);)
    if (line.find_first_not_of(" \t\r") != line.npos)
      last = line;
  return last;
}

} // namespace troupe::net
