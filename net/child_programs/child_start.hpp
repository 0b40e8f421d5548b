// Starts one program: all between the call and the program's first
// instruction. The memory of this process is not copied, whatever its size
// (vfork): pages that a GPU or a network card uses stay where they are.
#pragma once

#include "net/base/descriptor.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::net {

/// A limit for setrlimit; the program cannot raise it.
struct ChildLimit {
  int resource = 0; ///< RLIMIT_...
  std::uint64_t most = 0;
};

/// Says whose program it is: ours, or one of the user's, which may run code
/// that nobody has read. A program of the user's gets no new privileges and no
/// secrets of the environment, and all that it started ends with it and with
/// this process.
enum class Trust : std::uint8_t { ours, users };

struct ChildSpec {
  std::string name;              ///< "worker 1", for messages
  std::uint32_t number = 0;      ///< chosen by the caller, returned at the end
  std::vector<std::string> argv; ///< argv[0] is the program: a path or in PATH
  std::vector<std::pair<std::string, std::string>> environment; ///< added
  std::filesystem::path working_folder; ///< empty: the parent's
  std::filesystem::path output_file;    ///< stdout and stderr, appended; empty:
                                        ///< the parent's
  int input = -1;                       ///< descriptor for stdin; -1: empty
  int output = -1; ///< descriptor for stdout instead of output_file; -1: none
  std::vector<ChildLimit> limits;
  Trust trust = Trust::ours;
};

/// Returns a descriptor from which a program reads `text`.
Descriptor readable_text(const std::string& text);

/// Returns whether a variable of this name is kept from programs of the user's:
/// names that contain KEY, TOKEN, SECRET or PASSWORD.
bool is_secret_variable(const std::string& name);
/// Sets the variables, names to values, whose names such programs get
/// nevertheless; the values do not matter.
void let_variables_through(const std::map<std::string, std::string>& variables);

/// Starts a program that outlives this process, in a session of its own.
/// Throws FailureError (io) with the reason if it cannot be executed.
void start_detached(const ChildSpec& spec);
/// Starts a child that ends with the calling thread. It writes "+PID\n" to the
/// socket `guard` (-1: none) before it becomes the program. Throws as above.
pid_t start_child(const ChildSpec& spec, int guard);
/// Starts a child that outlives this process, in a session of its own and
/// without environment. Throws as above.
pid_t start_guard(const ChildSpec& spec);
/// Waits at most `limit` for a child that was killed; returns whether it ended.
bool wait_for_killed(pid_t pid, std::chrono::milliseconds limit);

} // namespace troupe::net
