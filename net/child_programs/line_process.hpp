// One process of a program that answers lines, as the round that writes to it
// and reads from it keeps it: its ends of the pipes, what is on its way in
// either direction, and when it was heard last.
#pragma once

#include "config/base/awake_clock.hpp"
#include "net/child_programs/line_programs.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace troupe::net {

struct LinePrograms::Process {
  std::uint32_t number = 0;
  std::uint32_t start = 0; ///< number of its start; a pid is used again
  pid_t pid = -1;          ///< -1: not running
  int input = -1;          ///< our end of its stdin
  int output = -1;
  bool ready = false;
  std::uintmax_t log_begin = 0; ///< start of this process's output in its log
  std::string unsent;
  std::string unread;                  ///< an incomplete answer
  std::deque<std::size_t> outstanding; ///< oldest first
  AwakeClock::time_point heard; ///< its last answer, or first line since idle

  bool waits() const {
    return pid > 0 && (!ready || !outstanding.empty());
  }
};

} // namespace troupe::net
