// slurm: writes a batch script for one `troupe train`.
#include "config/settings/settings.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/launch/slurm_script.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace troupe::runtime {

namespace {

struct SlurmOptions : CommandOptions {
  ConfigArguments config;
};

} // namespace

void add_slurm(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand("slurm", "Print a Slurm batch script");
  auto options = std::make_shared<SlurmOptions>();
  add_config_arguments(*command, options->config)->required();
  add_quiet_option(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options] {
      const auto settings
        = load_settings(options->config.files(), options->config.overrides());
      print_out(slurm_script(settings, user_program(),
                             options->config.arguments,
                             std::filesystem::current_path()));
      return 0;
    };
  });
}

} // namespace troupe::runtime
