#include "runtime/live/line_follower.hpp"

#include <algorithm>
#include <array>

namespace troupe::runtime {

LineFollower::LineFollower(const std::filesystem::path& file,
                           std::uint64_t history_bytes)
  : file_(file, std::ios::binary | std::ios::ate) {
  const auto size = static_cast<std::uint64_t>(file_.tellg());
  in_a_line_ = size > history_bytes;
  unread_ = in_a_line_ ? history_bytes + 1 : size;
  file_.seekg(in_a_line_ ? static_cast<std::streamoff>(size - history_bytes - 1)
                         : 0);
}

std::string LineFollower::read(std::size_t max_bytes) {
  std::array<char, 1 << 16> part{};
  std::size_t got = 0;
  do {
    file_.clear(); // it may have grown
    file_.read(part.data(), part.size());
    pending_.append(part.data(), static_cast<std::size_t>(file_.gcount()));
    got += static_cast<std::size_t>(file_.gcount());
  } while (file_ && got < max_bytes);
  unread_ = file_ ? unread_ - std::min<std::uint64_t>(unread_, got) : 0;
  if (in_a_line_) {
    const auto end = pending_.find('\n');
    in_a_line_ = end == std::string::npos;
    pending_.erase(0, in_a_line_ ? end : end + 1);
  }
  const auto end = pending_.rfind('\n') + 1; // 0 where there is none
  std::string lines = pending_.substr(0, end);
  pending_.erase(0, end);
  return lines;
}

} // namespace troupe::runtime
