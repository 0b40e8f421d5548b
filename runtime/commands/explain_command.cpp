// explain: describes settings.
#include "config/settings/settings.hpp"
#include "runtime/commands/command.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace troupe::runtime {

namespace {

struct ExplainOptions : CommandOptions {
  std::string key;
};

} // namespace

void add_explain(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand(
    "explain", "Explain one setting, or print all of them with comments");
  auto options = std::make_shared<ExplainOptions>();
  command->add_option(
    "key", options->key,
    "A setting or section, such as rollout.n; without it, all");
  add_quiet_option(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options] {
      print_out(explain_settings(options->key));
      return 0;
    };
  });
}

} // namespace troupe::runtime
