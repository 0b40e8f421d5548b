// Runs one program to its end: in a process group of its own that dies with
// this process, without input. Its output goes where ChildSpec has it.
#pragma once

#include "net/child_programs/child_pool.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::runtime {

/// Returns how the program ended; nothing if it was killed at the deadline,
/// which is optional. Throws FailureError (io) if it cannot be executed.
std::optional<net::ChildExit>
run_program(net::ChildSpec program,
            std::optional<std::chrono::milliseconds> deadline = std::nullopt);

/// Returns the last line of a program's output that is not empty, which says
/// what it failed with.
std::string last_line(const std::filesystem::path& output);

} // namespace troupe::runtime
