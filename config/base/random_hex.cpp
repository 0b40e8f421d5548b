#include "config/base/random_hex.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <system_error>
#include <vector>

namespace troupe {

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> noise(bytes);
  if (getrandom(noise.data(), noise.size(), 0)
      != static_cast<ssize_t>(noise.size()))
    throw std::system_error{errno, std::generic_category(), "getrandom"};
  std::string text;
  for (const auto byte : noise)
    text += fmt::format("{:02x}", byte);
  return text;
}

} // namespace troupe
