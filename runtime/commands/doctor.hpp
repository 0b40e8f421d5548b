// Checks whether this machine is fit to run. Each check reports what it found
// and, if that is a problem, what to do about it.
#pragma once

#include "runtime/commands/move_check.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::runtime {

struct DoctorCheck {
  std::string name;
  std::string found;
  std::string fix = {}; ///< what to do; empty: nothing
  bool ok() const {
    return fix.empty();
  }
};

/// Returns the folder if it exists, else the nearest one that it would be in.
std::filesystem::path nearest_existing(std::filesystem::path path);
/// Checks versions, devices, GPUs, NCCL, memory, shared memory, ports, clock
/// and disk. `run_dir` is where runs would be written.
std::vector<DoctorCheck> examine_machine(const std::filesystem::path& run_dir);
/// Moves weights between worker processes, as in a run, for some seconds.
DoctorCheck examine_moves(const MoveCheckPlan& plan);
bool all_ok(const std::vector<DoctorCheck>& checks);
std::string doctor_json(const std::vector<DoctorCheck>& checks);
std::string doctor_text(const std::vector<DoctorCheck>& checks);

} // namespace troupe::runtime
