// Measures this machine for the planner: forward, training and decoding of the
// run's own models through the engine that runs them, at sizes on both sides of
// where launching costs more than computing, and copies between threads. One
// device of one thread, as in a run.
#pragma once

#include "config/model_shape.hpp"
#include "plans/hardware.hpp"
#include "plans/profile_table.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace troupe::runtime {

struct MachineProfile {
  plans::Hardware hardware;
  plans::ProfileTable table;
};

/// "profiled on PROCESSOR": the name of files that were measured here.
std::string profiled_name();

/// A model to measure: its folder, shape and training.
struct ProfiledModel {
  std::filesystem::path folder;
  ModelShape shape;
  bool trained = false;
};

/// `models` by role; equal shapes are measured once. `seconds` bounds the time.
MachineProfile
measure_machine(const std::map<std::string, ProfiledModel>& models,
                double seconds);

} // namespace troupe::runtime
