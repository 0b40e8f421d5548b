// Losses that Python computes: a child process per device maps what the engine
// packed, differentiates the user's function by torch, and writes the gradient
// of the model's outputs into the same memory. From there the device goes on
// with its own backward pass. Pipes carry sizes, metrics and mistakes only.
#pragma once

#include "models/losses/loss.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::models {

/// Surroundings of a process of a loss.
struct PythonLossRun {
  std::string who = "a loss";            ///< in messages: "worker 0 device 1"
  std::string process = "loss";          ///< its log is PROCESS_0.log
  std::filesystem::path log_folder = {}; ///< empty: our standard error
  std::chrono::seconds deadline{120};    ///< cluster.own_actor_timeout_s
  const std::atomic<bool>* stop = nullptr;
};

/// Makes the entry of a loss of a workflow file: `call`'s function, which gets
/// these keys as [T].
LossEntry python_loss_entry(const FileCall& call, bool scalar_head);
/// Sets the entry's function to one with a process of its own, which starts at
/// the first micro-batch and ends with the last copy of the entry. The function
/// throws FailureError (bad_input) with the place in the user's file.
void bind_python(LossEntry& entry, PythonLossRun run);

/// Returns the command of a process that computes the entry's loss. It writes
/// `python_loss_ready` once the file is loaded.
std::vector<std::string> python_loss_command(const LossEntry& entry);
inline constexpr const char* python_loss_ready = "ready";

} // namespace troupe::models
