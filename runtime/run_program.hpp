// One program, run to its end: in a process group of its own that dies with
// this process, with nothing to read. What it says goes where ChildSpec has it.
#pragma once

#include "net/child_pool.hpp"

#include <chrono>
#include <optional>

namespace troupe::runtime {

/// How it ended; nothing where it had to be killed at the deadline. Throws
/// FailureError (io) when it cannot be executed.
std::optional<net::ChildExit> run_program(net::ChildSpec program,
                                          std::chrono::milliseconds deadline
                                          = std::chrono::years{1});

} // namespace troupe::runtime
