#include "net/child_programs/group_memory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

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

/// Returns whether this folder of /proc is that of a process of the group.
bool is_of_group(const std::filesystem::path& entry, pid_t group) {
  const auto name = entry.filename().string();
  const auto is_digit
    = [](unsigned char letter) { return std::isdigit(letter) != 0; };
  return std::ranges::all_of(name, is_digit)
         && ::getpgid(static_cast<pid_t>(std::stol(name))) == group;
}

/// Returns the files of Python's memory that a process has mapped.
std::set<std::string> python_memory_of(const std::filesystem::path& process) {
  std::set<std::string> files;
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);)
    if (auto file = python_memory_in(line); !file.empty())
      files.insert(std::move(file));
  return files;
}

} // namespace

void GroupMemory::note(pid_t group) {
  std::error_code gone; // processes end while we look
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    if (!is_of_group(entry.path(), group))
      continue;
    for (const auto& file : python_memory_of(entry.path()))
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
