// k8s: writes a Kubernetes manifest for one run.
#include "config/base/error.hpp"
#include "config/base/plain_text.hpp"
#include "config/settings/settings.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/launch/k8s_manifest.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/run_folder/run_secret.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace troupe::runtime {

namespace {

struct K8sCommandOptions : CommandOptions {
  ConfigArguments config;
  K8sOptions manifest;
};

/// Refuses what would end a line of the manifest, or a name that is none.
std::string refuse_unnamable(const std::string& text) {
  const bool named
    = !text.empty()
      && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.")
           == std::string::npos;
  return named ? "" : "expected small letters, digits, '-' and '.'";
}

std::string refuse_relative(const std::string& text) {
  return text.starts_with('/') && is_plain_text(text) ? ""
                                                      : "expected a full path";
}

int print_manifest(const K8sCommandOptions& options) {
  const auto settings
    = load_settings(options.config.files(), options.config.overrides());
  const auto& given = options.manifest;
  const bool clear = settings.cluster.tls == "off";
  const auto secret
    = given.secret.empty() ? make_run_secret(!clear).text : std::string{};
  const auto program = std::filesystem::path(user_program()).filename();
  print_out(k8s_manifest(settings, given, program.string(),
                         options.config.arguments, secret));
  if (given.secret.empty())
    print_note(options, "the manifest holds the run's token and key: whoever "
                        "reads it can join the run");
  return 0;
}

void add_options(CLI::App& command, K8sOptions& options) {
  command.add_option("--image", options.image, "Image with this program")
    ->capture_default_str();
  command.add_option("--namespace", options.name_space, "Namespace")
    ->check(CLI::Validator(refuse_unnamable, "NAME"))
    ->capture_default_str();
  command
    .add_option("--claim", options.claim,
                "PersistentVolumeClaim of models, data and runs")
    ->check(CLI::Validator(refuse_unnamable, "NAME"))
    ->capture_default_str();
  command
    .add_option("--folder", options.folder,
                "Where pods mount it; relative paths begin there")
    ->check(CLI::Validator(refuse_relative, "FOLDER"))
    ->capture_default_str();
  command
    .add_option("--secret", options.secret,
                "Secret of the cluster whose key `secret` is a file of "
                "cluster.secret; else the manifest has a new one")
    ->check(CLI::Validator(refuse_unnamable, "NAME"));
  command
    .add_option("--cpus", options.cpus,
                "Cores of a node's pod; 0: one per CPU device")
    ->capture_default_str();
}

} // namespace

void add_k8s(CLI::App& app, CommandRun& chosen) {
  auto* command
    = app.add_subcommand("k8s", "Print a Kubernetes manifest (a JobSet)");
  auto options = std::make_shared<K8sCommandOptions>();
  add_config_arguments(*command, options->config)->required();
  add_options(*command, options->manifest);
  add_quiet_option(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options] { return print_manifest(*options); };
  });
}

} // namespace troupe::runtime
