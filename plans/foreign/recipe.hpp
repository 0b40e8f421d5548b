// A configuration of another system in our words: the work of a step
// and the layout in which that system runs it. Numbers that its file does not
// have are that system's defaults, and say so.
#pragma once

#include "plans/foreign/foreign_config.hpp"
#include "plans/foreign/system_layout.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::plans {

enum class System : std::uint8_t {
  verl,
  openrlhf,
  trl,
  nemo_rl,
  areal,
  deepspeed_chat
};
/// Returns "verl", "deepspeed-chat", ...: the words of --from.
const char* to_string(System system);
const std::vector<std::string>& system_names();
/// Throws ConfigError with the nearest name.
System parse_system(const std::string& name);

/// Tells what became of one value of the file.
enum class Fate : std::uint8_t {
  understood,
  irrelevant,   ///< changes neither times nor memory: logging, data, seeds
  not_modelled, ///< changes them in a way that the plan does not show
  unknown,
};

struct ReadValue {
  ForeignValue value;
  Fate fate = Fate::unknown;
  std::string meaning = {}; ///< "data.batch_size", or why not
};

/// A number that no file says.
struct AssumedValue {
  std::string key; ///< in that system's words
  std::string value;
  std::string meaning; ///< in ours
};

/// The work of a step.
struct Workload {
  std::string workflow = "ppo"; ///< ppo | grpo
  std::uint32_t nodes = 1;
  std::uint32_t devices_per_node = 8;
  std::map<std::string, std::string> models = {}; ///< names by role
  /// Settings of ours, by dotted key, in the order of our files.
  std::vector<std::pair<std::string, std::string>> settings = {};

  std::uint32_t num_devices() const {
    return nodes * devices_per_node;
  }
  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key) const; ///< "": not set
};

struct Recipe {
  System system = System::verl;
  Workload work = {};
  SystemLayout layout = {};
  std::vector<ReadValue> values = {};
  std::vector<AssumedValue> assumed = {};
  std::vector<ForeignNote> notes = {};
};

/// Said of recipes whose optimizer works on the host.
inline constexpr const char* host_optimizer_note
  = "the offloaded optimizer is planned as loaded for its step: DeepSpeed's, "
    "which works on the host, needs less memory on the devices and more time";

/// Returns the system whose words the configuration has. Throws ConfigError
/// with the names if it has none of them.
System detect_system(const ForeignConfig& config);

/// Reads a configuration of `system`. Throws ConfigError where a plan cannot be
/// made of it: a model or a number of devices is missing or makes no sense.
Recipe read_recipe(System system, const ForeignConfig& config);

} // namespace troupe::plans
