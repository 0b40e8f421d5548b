// plan advise: what a configuration of ours or of another system costs, what
// the best layout that this system can be told would gain, and the best plan of
// all.
#include "config/base/error.hpp"
#include "runtime/base/stream_files.hpp"
#include "runtime/planner/adviser.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace troupe::runtime {

namespace {

int advise_command(const AdviseArguments& arguments) {
  if (!arguments.html.empty())
    check_out_file(arguments.html, "--html");
  auto counted = arguments;
  if (!is_ours(arguments.words))
    counted.storage = Storage::published;
  const auto report = advise(counted);
  if (!arguments.html.empty())
    write_result(arguments.html, advice_page(report));
  print_out(arguments.json ? advice_json(report) : advice_text(report));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_plan_advise(CLI::App& plan, CommandRun& chosen, const PlanHost& host) {
  auto arguments = std::make_shared<AdviseArguments>();
  arguments->host = host;
  arguments->hardware = "h100x8";
  auto* command = plan.add_subcommand(
    "advise", "What a configuration of ours or of another system costs, the "
              "best that this system can be told, the best of all");
  add_import_words(*command, arguments->words)->required();
  add_problem_arguments(*command, *arguments);
  add_html_option(*command, *arguments);
  command
    ->add_option("--gpus", arguments->gpus,
                 "Plan for so many devices, not for those of the file")
    ->check(CLI::PositiveNumber);
  command
    ->add_option("--what-if", arguments->what_if,
                 "Predict a change beside it: tp=4, train_tp, pp, zero, "
                 "offload, share, lag, or a flag of the system; for settings "
                 "of ours a key of theirs; may be given again")
    ->allow_extra_args(false);
  command
    ->add_option("--price", arguments->price,
                 "Of a device for an hour, for a column of costs")
    ->check(CLI::NonNegativeNumber)
    ->check(refuse_nan);
  command->add_flag("!--no-clusters", arguments->clusters,
                    "Leave out the table of other cluster sizes");
  add_table_options(*command, *arguments);
  command->callback([arguments, &chosen] {
    chosen = [arguments] { return advise_command(*arguments); };
  });
}

} // namespace troupe::runtime
