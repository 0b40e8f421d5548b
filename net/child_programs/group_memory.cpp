#include "net/child_programs/group_memory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace troupe::net {

namespace {

constexpr std::string_view memory_folder = "/dev/shm/";

/// Returns the inode of a file; nullopt: there is none.
std::optional<ino_t> inode_of(const std::filesystem::path& file) {
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0)
    return std::nullopt;
  return status.st_ino;
}

/// Returns the file of a line of /proc/PID/maps, if Python named it; else "".
std::string python_memory_in(const std::string& line) {
  const auto begin = line.find(memory_folder);
  if (begin == line.npos)
    return "";
  const std::string_view name
    = std::string_view(line).substr(begin + memory_folder.size());
  const bool is_known = name.starts_with("psm_") || name.starts_with("sem.mp-");
  return is_known ? line.substr(begin) : "";
}

} // namespace

void GroupMemory::note(pid_t group) {
  std::error_code gone; // processes end while we look
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const auto name = entry.path().filename().string();
    if (!std::ranges::all_of(
          name, [](unsigned char c) { return std::isdigit(c) != 0; })
        || ::getpgid(static_cast<pid_t>(std::stol(name))) != group)
      continue;
    std::ifstream maps(entry.path() / "maps");
    for (std::string line; std::getline(maps, line);)
      if (const auto file = python_memory_in(line); !file.empty())
        if (const auto inode = inode_of(file))
          files_[file] = *inode;
  }
}

std::size_t GroupMemory::remove() {
  std::size_t removed = 0;
  for (const auto& [file, inode] : files_)
    if (inode_of(file) == inode && ::unlink(file.c_str()) == 0)
      ++removed;
  files_.clear();
  return removed;
}

} // namespace troupe::net
