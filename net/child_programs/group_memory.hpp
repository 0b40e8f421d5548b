// Named shared memory of the programs of one process group: a program that is
// killed leaves its own in /dev/shm, and a server of a model leaves hundreds of
// megabytes with each death. So what they have is noted while they run, and
// what is left of it removed after their end.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <map>

namespace troupe::net {

class GroupMemory {
public:
  /// Notes the files that programs of the group have mapped, of those that
  /// Python names for one program alone: psm_*, sem.mp-*.
  void note(pid_t group);
  /// Removes the noted files that are still there, which the end of the group
  /// must come before, and forgets all. Returns how many it removed.
  std::size_t remove();

private:
  std::map<std::filesystem::path, ino_t> files_;
};

} // namespace troupe::net
