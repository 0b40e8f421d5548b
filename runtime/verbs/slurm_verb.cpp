// slurm: a batch script for one `troupe train`.
#include "config/settings.hpp"
#include "runtime/launcher.hpp"
#include "runtime/slurm_script.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace troupe::runtime {

namespace {

struct SlurmOptions : VerbOptions {
  ConfigWords config;
};

} // namespace

void add_slurm(CLI::App& app, VerbRun& chosen) {
  auto* verb = app.add_subcommand("slurm", "Print a Slurm batch script");
  auto options = std::make_shared<SlurmOptions>();
  add_config_words(*verb, options->config)->required();
  add_quiet_option(*verb, *options);
  verb->callback([options, &chosen] {
    chosen = [options] {
      const auto settings
        = load_settings(options->config.files(), options->config.overrides());
      print_out(slurm_script(settings, own_program(), options->config.words,
                             std::filesystem::current_path()));
      return 0;
    };
  });
}

} // namespace troupe::runtime
