// plan search: prints the plan found on stdout, how it was found on stderr.
#include "config/base/error.hpp"
#include "plans/cost/hardware_sources.hpp"
#include "plans/plan/plan_names.hpp"
#include "plans/search/less_memory.hpp"
#include "plans/search/staleness.hpp"
#include "plans/simulate/simulator.hpp"
#include "runtime/base/stream_files.hpp"
#include "runtime/planner/html_page.hpp"
#include "runtime/planner/plan_basis.hpp"
#include "runtime/planner/plan_options.hpp"
#include "runtime/planner/staleness_table.hpp"
#include "runtime/planner/user_plan.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <optional>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

struct SearchArguments : PlanArguments {
  std::string method = "auto";
  double seconds = 0;
  std::uint64_t iterations = 0;
  std::uint64_t seed = 1;
  bool chunks = false;
  std::vector<std::string> lag; ///< "actor_gen=1"
};

std::atomic<bool> search_stop{false};

/// Stops the search; a second signal ends the program.
extern "C" void stop_search(int number) {
  search_stop = true;
  std::signal(number, SIG_DFL);
}

/// Returns the calls that read weights which training changes.
std::vector<std::string> calls_that_may_lag(const plans::Workflow& workflow) {
  std::vector<std::string> names;
  for (const auto& call : workflow.calls)
    if (!call.role.empty() && call.kind != plans::CallKind::train
        && workflow.role(call.role).changes())
      names.push_back(call.name);
  return names;
}

/// Parses --lag CALL=STEPS.
std::map<std::string, std::uint32_t>
parse_lags(const std::vector<std::string>& arguments,
           const plans::Workflow& workflow) {
  const auto calls = calls_that_may_lag(workflow);
  std::map<std::string, std::uint32_t> lag;
  for (const auto& word : arguments) {
    const auto at = word.find('=');
    const auto digits = at == std::string::npos ? "" : word.substr(at + 1);
    if (digits.size() != 1 || digits < "1" || digits > "8")
      throw ConfigError({.place = {"command line", 0},
                         .path = "--lag",
                         .expected = "CALL=STEPS with 1 to 8 steps",
                         .got = "'" + word + "'",
                         .hint = "actor_gen=1"});
    const auto call = word.substr(0, at);
    if (std::ranges::find(calls, call) == calls.end())
      throw ConfigError(
        {.place = {"command line", 0},
         .path = "--lag",
         .expected = fmt::format("a call of {} that reads trained weights ({})",
                                 workflow.name, fmt::join(calls, ", ")),
         .got = "'" + call + "'",
         .hint = plans::quoted_nearest(call, calls)});
    lag[call] = static_cast<std::uint32_t>(digits[0] - '0');
  }
  return lag;
}

/// Throws ConfigError for a --lag that the settings do not allow.
void check_given_lags(const Settings& settings,
                      const std::map<std::string, std::uint32_t>& lags) {
  for (const auto& [call, steps] : lags)
    if (lags_too_far(settings, steps))
      throw ConfigError({.place = {"command line", 0},
                         .path = "--lag",
                         .expected = allowed_lag_text(settings),
                         .got = fmt::format("{}={}", call, steps),
                         .hint = fmt::format("algorithm.max_lag={}", steps)});
}

/// Returns the plan with less memory; null if it was not searched: memory is
/// unknown, or the search was ended.
Json less_memory_json(const std::optional<plans::LessMemory>& less) {
  if (!less)
    return nullptr;
  Json text
    = {{"share", plans::less_memory_share}, {"fits", less->best.has_value()}};
  if (less->best) {
    text["step_s"] = less->best->step_s;
    text["changes"] = less->changes;
    text["plan"] = plans::print(less->best->plan);
  }
  return text;
}

std::string search_json(const plans::StalenessSearch& searched,
                        const std::optional<plans::LessMemory>& less,
                        const plans::PlanProblem& problem) {
  const auto& found = searched.chosen;
  auto next = Json::array();
  for (const auto& other : found.next)
    next.push_back({{"step_s", other.step_s},
                    {"origin", other.origin},
                    {"plan", plans::print(other.plan)}});
  const auto& counts = found.counts;
  return Json{{"basis", basis_json(problem.hardware)},
              {"step_s", found.best.step_s},
              {"lower_bound_s", found.lower_bound_s},
              {"gap", found.gap()},
              {"method", found.method},
              {"proved", found.proved},
              {"packed_only", found.packed_only},
              {"note", plans::proof_sentence(found)},
              {"interrupted", found.end == plans::SearchEnd::interrupted},
              {"origin", found.best.origin},
              {"evaluations", found.evaluations},
              {"nodes", found.nodes},
              {"seconds", found.seconds},
              {"options",
               {{"kept", counts.kept},
                {"illegal", counts.illegal},
                {"memory", counts.memory},
                {"dominated", counts.dominated}}},
              {"plan", plans::print(found.best.plan)},
              {"next", std::move(next)},
              {"less_memory", less_memory_json(less)},
              {"staleness", staleness_json(searched, problem)}}
    .dump(2, ' ', false, Json::error_handler_t::replace);
}

/// Prints how the plan was found, how good it is and what staleness buys.
void note_search(const SearchArguments& arguments,
                 const plans::StalenessSearch& searched,
                 const plans::PlanProblem& problem) {
  const auto& found = searched.chosen;
  for (const auto& line : found.history)
    print_note(arguments, line);
  print_note(arguments,
             fmt::format("{} ({}, {:.2f} s{})", plans::summary(found),
                         found.best.origin, found.seconds,
                         found.end == plans::SearchEnd::interrupted
                           ? ", interrupted"
                           : ""));
  print_note(arguments, plans::proof_sentence(found));
  for (const auto& line : next_best_lines(found))
    print_note(arguments, line);
  for (const auto& line : staleness_lines(searched, problem))
    print_note(arguments, line);
  print_note(arguments, plans::basis_of(problem.hardware));
}

/// Writes the best plan's step, how it was found, and what others take.
void write_search_page(const SearchArguments& arguments,
                       const plans::PlanProblem& problem,
                       const plans::SearchResult& found) {
  HtmlPage page(fmt::format("search on {}", problem.hardware.name));
  page.paragraph(plans::summary(found));
  page.paragraph(plans::proof_sentence(found));
  std::vector<HtmlBar> bars = {{"lower bound", found.lower_bound_s},
                               {"best", found.best.step_s, found.best.origin}};
  for (const auto& next : found.next)
    bars.push_back({"next best", next.step_s, next.origin});
  page.bars(bars, "s a step");
  page.step("the best plan's predicted step",
            plans::simulate(problem,
                            plans::CostModel(problem).with_planned_moves(),
                            found.best.plan));
  page.preformatted(plans::print(found.best.plan));
  page.heading("how it was found");
  page.preformatted(fmt::format("{}", fmt::join(found.history, "\n")));
  page.paragraph(plans::basis_of(problem.hardware));
  write_result(arguments.html, page.print());
}

/// Runs `plan search`. As text, the plan is printed before the second search
/// begins, so that it is there even if that search is ended.
int search_command(const SearchArguments& arguments) {
  std::signal(SIGINT, stop_search);
  std::signal(SIGTERM, stop_search);
  if (!arguments.html.empty())
    check_out_file(arguments.html, "--html");
  const auto settings = arguments.settings();
  const auto problem = make_problem(settings, arguments);
  const plans::CostModel costs(problem);
  const plans::SearchOptions options{
    .method = plans::parse_search_method(arguments.method),
    .seed = arguments.seed,
    .iterations = arguments.iterations,
    .seconds = arguments.seconds,
    .lag = parse_lags(arguments.lag, problem.workflow),
    .chunks = arguments.chunks ? plans::ChunkSearch::everywhere
                               : plans::ChunkSearch::afterwards,
    .stop = &search_stop};
  check_given_lags(settings, options.lag);
  const auto searched
    = plans::find_plan_within(problem, costs, options, max_lag_of(settings));
  const auto& found = searched.chosen;
  note_search(arguments, searched, problem);
  if (!arguments.json)
    print_out(plans::print(found.best.plan));
  if (!arguments.html.empty())
    write_search_page(arguments, problem, found);
  std::optional<plans::LessMemory> less;
  if (!search_stop)
    less = plans::search_less_memory(problem, searched.options, found.best);
  if (less)
    print_note(arguments, plans::less_memory_line(*less, found.best.step_s));
  if (arguments.json)
    print_out(search_json(searched, less, problem));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_plan_search(CLI::App& plan, CommandRun& chosen, const PlanHost& host) {
  auto arguments = std::make_shared<SearchArguments>();
  arguments->host = host;
  auto* command = plan.add_subcommand(
    "search",
    "Find a plan: YAML on stdout; how, how good and what is proved of "
    "it on stderr");
  add_plan_arguments(*command, *arguments);
  add_problem_arguments(*command, *arguments);
  add_html_option(*command, *arguments);
  command->add_option("--method", arguments->method,
                      "auto, exact, mcmc, descent");
  command
    ->add_option("--seconds", arguments->seconds, "Wall time of local searches")
    ->check(CLI::NonNegativeNumber)
    ->check(refuse_nan);
  command
    ->add_option("--iterations", arguments->iterations,
                 "Simulations of local searches: same answer everywhere")
    ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", arguments->seed, "Of local searches")
    ->check(CLI::NonNegativeNumber);
  command->add_flag(
    "--chunks", arguments->chunks,
    "Calls in chunks everywhere, not only of the best plans: no "
    "proof then");
  command
    ->add_option("--lag", arguments->lag,
                 "Allow a call to lag: CALL=STEPS; may be given again")
    ->allow_extra_args(false); // a CONFIG may follow
  add_table_options(*command, *arguments);
  command->callback([arguments, &chosen] {
    chosen = [arguments] { return search_command(*arguments); };
  });
}

} // namespace troupe::runtime
