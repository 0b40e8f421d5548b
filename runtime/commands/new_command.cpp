// new: the files that a user-defined workflow begins with.
#include "config/base/error.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/commands/workflow_template.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>

namespace troupe::runtime {

namespace {

struct NewOptions : CommandOptions {
  std::string name;
  std::string folder;
};

[[noreturn]] void cannot_write(const std::string& what,
                               const std::string& got) {
  throw ConfigError({.place = {"command line", 0},
                     .path = "--out",
                     .expected = what,
                     .got = got,
                     .hint = "--out FOLDER"});
}

void write_files(const std::filesystem::path& folder,
                 const std::vector<TemplateFile>& files) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    cannot_write("a folder that can be written",
                 "'" + folder.string() + "' (" + error.message() + ")");
  if (!std::filesystem::is_empty(folder))
    cannot_write("a new or empty folder",
                 "'" + folder.string() + "', which has files");
  for (const auto& file : files) {
    std::ofstream out(folder / file.name);
    out << file.text << std::flush;
    if (!out)
      cannot_write("a folder that can be written",
                   "'" + (folder / file.name).string() + "'");
  }
}

int make_workflow_files(const NewOptions& options) {
  const auto files = workflow_template(options.name);
  const std::filesystem::path folder
    = options.folder.empty() ? options.name : options.folder;
  write_files(folder, files);
  for (const auto& file : files)
    print_out((folder / file.name).string());
  print_note(options,
             fmt::format(
               "Next, in Troupe's folder (docs/custom_workflows.md explains):\n"
               "  make install PREFIX=$HOME/troupe\n"
               "  cmake -S {0} -B {0}/build -DCMAKE_PREFIX_PATH=$HOME/troupe "
               "&& cmake --build {0}/build\n"
               "  {0}/build/{1} train {0}/{1}.yaml",
               folder.string(), options.name));
  return 0;
}

} // namespace

void add_new(CLI::App& app, CommandRun& chosen) {
  auto* group = app.add_subcommand("new", "Write the files to begin with");
  group->require_subcommand(1);
  auto* command = group->add_subcommand(
    "workflow", "Write a program with a workflow of your own");
  auto options = std::make_shared<NewOptions>();
  command->add_option("name", options->name, "Its name, such as my_workflow")
    ->required();
  command->add_option(
    "--out", options->folder,
    "Folder that the files go to, new or empty (default: NAME)");
  add_quiet_option(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options] { return make_workflow_files(*options); };
  });
}

} // namespace troupe::runtime
