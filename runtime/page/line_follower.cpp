#include "runtime/page/line_follower.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::runtime {

LineFollower::LineFollower(const std::filesystem::path& file,
                           std::uint64_t history_bytes)
  : path_(file),
    file_(file, std::ios::binary | std::ios::ate) {
  was_replaced();
  const auto size = static_cast<std::uint64_t>(file_.tellg());
  in_a_line_ = size > history_bytes;
  unread_ = in_a_line_ ? history_bytes + 1 : size;
  file_.seekg(in_a_line_ ? static_cast<std::streamoff>(size - history_bytes - 1)
                         : 0);
}

/// Returns whether the name stands for another file than at the last call.
bool LineFollower::was_replaced() {
  struct stat now {};
  return ::stat(path_.c_str(), &now) == 0
         && std::exchange(inode_, now.st_ino) != now.st_ino;
}

/// A run that recovers cuts its files back to a checkpoint, or puts copies that
/// are cut back into their place; what follows there is read, what was read
/// before is not read again.
void LineFollower::follow_cut() {
  file_.clear();
  const auto position = file_.tellg();
  if (was_replaced())
    file_ = std::ifstream{path_, std::ios::binary};
  file_.seekg(0, std::ios::end);
  const auto end = file_.tellg();
  if (end < position)
    pending_.clear();
  file_.seekg(std::min(position, end));
}

std::string LineFollower::read(std::size_t max_bytes) {
  follow_cut();
  std::array<char, 1 << 16> part{};
  std::size_t got = 0;
  do {
    file_.clear(); // the file may have grown
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
  const auto end = pending_.rfind('\n') + 1; // 0 if there is none
  std::string lines = pending_.substr(0, end);
  pending_.erase(0, end);
  return lines;
}

} // namespace troupe::runtime
