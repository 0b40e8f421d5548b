// The table at the end of a run: where the time went, how fast it was, how long
// each device was idle, what changed, where the checkpoint and the trace are.
#pragma once

#include "runtime/metrics/step_metrics.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::runtime {

class RunSummary {
public:
  /// Adds a step's timing_s/*, perf/total_num_tokens and headline numbers.
  void add(const StepMetrics& metrics);
  /// Adds seconds of a phase outside any step.
  void add_phase(const std::string& phase, double seconds);
  /// Sets the busy seconds of one device over the whole run ("device 0 (worker
  /// 0)"), and a remark on its memory.
  void set_device(const std::string& name, double busy_s,
                  const std::string& memory = {});
  /// Sets the wall seconds of the run, including start-up and shut-down.
  void set_wall_seconds(double seconds) {
    wall_s_ = seconds;
  }
  void set_checkpoint(std::filesystem::path path) {
    checkpoint_ = std::move(path);
  }
  void set_trace(std::filesystem::path path) {
    trace_ = std::move(path);
  }
  /// Returns the whole summary, several lines ending with a newline.
  std::string print() const;

private:
  struct Series {
    std::string name;
    std::vector<double> values;
  };
  struct Device {
    std::string name;
    double busy_s;
    std::string memory;
  };
  std::string phase_table() const;
  std::string device_lines() const;
  std::string progress_lines() const;

  std::uint32_t num_steps_ = 0;
  double steps_s_ = 0; ///< sum of timing_s/step
  double wall_s_ = 0;
  double tokens_ = 0;
  NamedNumbers phases_s_;      ///< seconds by phase, in the order of metrics
  std::vector<Series> series_; ///< headline numbers, one value per step
  std::vector<Device> devices_;
  std::filesystem::path checkpoint_;
  std::filesystem::path trace_;
};

} // namespace troupe::runtime
