// explain: settings in words.
#include "config/settings.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace troupe::runtime {

namespace {

struct ExplainOptions : VerbOptions {
  std::string key;
};

} // namespace

void add_explain(CLI::App& app, VerbRun& chosen) {
  auto* verb = app.add_subcommand(
    "explain", "Explain one setting, or print all of them with comments");
  auto options = std::make_shared<ExplainOptions>();
  verb->add_option("key", options->key,
                   "A setting or section, such as rollout.n; without it, all");
  add_quiet_option(*verb, *options);
  verb->callback([options, &chosen] {
    chosen = [options] {
      print_out(explain_settings(options->key));
      return 0;
    };
  });
}

} // namespace troupe::runtime
