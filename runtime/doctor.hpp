// Is this machine fit to run? Each check says what it found and, where it is
// not, what to do about it.
#pragma once

#include "runtime/move_check.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::runtime {

struct DoctorCheck {
  std::string name;
  std::string found;
  std::string fix = {}; ///< what to do; empty where all is well
  bool ok() const {
    return fix.empty();
  }
};

/// Versions, devices, GPUs, NCCL, memory, shared memory, ports, clock, disk.
/// `run_dir` is where runs would be written.
std::vector<DoctorCheck> examine_machine(const std::filesystem::path& run_dir);
/// Weights moved between worker processes as in a run, for some seconds.
DoctorCheck examine_moves(const MoveCheckPlan& plan);
bool all_ok(const std::vector<DoctorCheck>& checks);
std::string doctor_json(const std::vector<DoctorCheck>& checks);
std::string doctor_text(const std::vector<DoctorCheck>& checks);

} // namespace troupe::runtime
