#include "iteration_settings.hpp"

namespace troupe::bench {

std::uint32_t iteration_devices(const Options& options) {
  return options.plan == "single" ? 1
                                  : static_cast<std::uint32_t>(options.threads);
}

std::vector<std::string> iteration_settings(const Options& options,
                                            const CardFolder& folder,
                                            const std::string& workflow) {
  const bool is_ppo = workflow == "ppo";
  auto settings = is_ppo ? folder.ppo_settings() : folder.grpo_settings();
  std::vector<std::string> roles{"actor"};
  if (is_ppo)
    roles.insert(roles.end(), {"critic", "ref", "reward"});
  for (const auto& role : roles)
    settings.push_back("models." + role + ".dtype=" + options.dtype);
  settings.insert(
    settings.end(),
    {"cluster.nodes=1",
     "cluster.devices_per_node=" + std::to_string(iteration_devices(options)),
     "cluster.workers_per_node=1", "cluster.device=" + options.device,
     "plan=" + options.plan, "run.name=bench",
     // the last step writes a checkpoint: it does not count
     "run.steps="
       + std::to_string(iteration_warm_up_steps + options.runs + 1)});
  return settings;
}

} // namespace troupe::bench
