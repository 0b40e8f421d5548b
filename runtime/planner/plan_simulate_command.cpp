// plan simulate: a predicted step of a plan, second by second.
#include "config/base/error.hpp"
#include "plans/cost/hardware_sources.hpp"
#include "plans/simulate/simulator.hpp"
#include "plans/simulate/timeline.hpp"
#include "runtime/base/human_text.hpp"
#include "runtime/base/stream_files.hpp"
#include "runtime/base/text_table.hpp"
#include "runtime/planner/html_page.hpp"
#include "runtime/planner/memory_table.hpp"
#include "runtime/planner/plan_basis.hpp"
#include "runtime/planner/plan_options.hpp"
#include "runtime/planner/user_plan.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <set>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

struct SimulateArguments : PlanArguments {
  std::string svg;
  std::string trace;
};

Json device_numbers(const std::vector<Rank>& devices) {
  auto numbers = Json::array();
  for (const auto device : devices)
    numbers.push_back(device.value);
  return numbers;
}

/// Returns the tasks of all simulated steps.
Json simulated_tasks(const plans::Simulation& run) {
  auto tasks = Json::array();
  for (const auto& times : run.times) {
    const auto& task = run.graph.tasks[times.task.task];
    tasks.push_back({{"name", task.name},
                     {"call", task.call},
                     {"step", times.task.step.value},
                     {"start_s", times.start_s},
                     {"end_s", times.end_s},
                     {"devices", device_numbers(task.devices)}});
  }
  return tasks;
}

/// Returns [[second, bytes from then on], ...].
Json memory_json(const std::vector<plans::MemoryPoint>& curve) {
  auto points = Json::array();
  for (const auto& point : curve)
    points.push_back({point.at_s, point.bytes});
  return points;
}

Json rooms_json(const plans::ResponseRooms& rooms) {
  auto calls = Json::object();
  for (const auto& [call, room] : rooms)
    calls[call] = {{"answers", room.responses},
                   {"sequences", room.sequences},
                   {"of", room.all},
                   {"cache_bytes", room.cache_bytes}};
  return calls;
}

std::string simulation_json(const plans::Simulation& run,
                            const std::string& plan_name,
                            const plans::ClusterHardware& hardware) {
  auto devices = Json::array();
  for (const auto& device : run.devices) {
    devices.push_back({{"device", device.device.value},
                       {"busy_s", device.busy_s},
                       {"idle_s", device.idle.total_s()},
                       {"peak_bytes", device.peak_bytes},
                       {"peak_task", device.peak_task},
                       {"memory", memory_json(device.memory)}});
    if (!device.kind.empty())
      devices.back()["kind"] = device.kind;
  }
  double intra = 0, inter = 0;
  for (const auto& move : run.moved) {
    intra += move.intra;
    inter += move.inter;
  }
  return Json{{"plan", plan_name},
              {"basis", basis_json(hardware)},
              {"step_s", run.step_s},
              {"master_s", run.master_s},
              {"idle_share", run.idle_share},
              {"idle_s",
               {{"dependency", run.idle.dependency_s},
                {"version", run.idle.version_s},
                {"device", run.idle.device_s}}},
              {"critical_path", run.critical_path},
              {"tasks", simulated_tasks(run)},
              {"devices", std::move(devices)},
              {"rooms", rooms_json(run.rooms)},
              {"moved_bytes", run.moved_bytes()},
              {"evaluation_s", run.evaluation_s},
              {"moved_bytes_by_link", {{"intra", intra}, {"inter", inter}}}}
    .dump(2, ' ', false, Json::error_handler_t::replace);
}

/// Returns "0-7", with the kinds of their nodes where these differ.
std::string devices_text(const plans::Simulation& run,
                         const std::vector<Rank>& devices) {
  std::set<std::string> kinds;
  for (const auto& device : run.devices)
    if (!device.kind.empty() && std::ranges::count(devices, device.device) > 0)
      kinds.insert(device.kind);
  return plans::print_devices(devices)
         + (kinds.empty() ? "" : fmt::format(" ({})", fmt::join(kinds, ", ")));
}

std::string task_table(const plans::Simulation& run) {
  TextTable table({"task", "devices", "> seconds", "> moved GB"});
  for (std::size_t i = 0; i < run.graph.tasks.size(); ++i) {
    const auto& task = run.graph.tasks[i];
    const auto& moved = run.moved[i];
    table.row({task.name, devices_text(run, task.devices),
               three_digits(run.durations_s[i]),
               moved.intra + moved.inter > 0
                 ? three_digits((moved.intra + moved.inter) / 1e9)
                 : ""});
  }
  return table.print();
}

std::string simulation_text(const plans::Simulation& run,
                            const std::string& plan_name,
                            const plans::ClusterHardware& hardware) {
  const plans::DeviceUse* fullest = nullptr;
  for (const auto& device : run.devices)
    if (!fullest || device.peak_bytes > fullest->peak_bytes)
      fullest = &device;
  auto text = fmt::format(
    "plan {} on {}\n{}\n{}\nstep {:.4g} s, idle {:.1f} % (rows {:.3g} s, "
    "weights {:.3g} s, devices {:.3g} s), moved {:.2f} GB\ncritical path: "
    "{}\n",
    plan_name, hardware.name, task_table(run), plans::ascii_timeline(run),
    run.step_s, 100 * run.idle_share, run.idle.dependency_s, run.idle.version_s,
    run.idle.device_s, run.moved_bytes() / 1e9,
    fmt::join(run.critical_path, " > "));
  if (run.master_s > 0)
    text += fmt::format("of a step the master needs {:.3g} s for its calls\n",
                        run.master_s);
  if (run.evaluation_s > 0)
    text += fmt::format("an evaluation between steps {:.4g} s\n",
                        run.evaluation_s);
  if (fullest)
    text += fmt::format("peak memory {} on device {} in {}\n",
                        bytes_text(static_cast<double>(fullest->peak_bytes)),
                        fullest->device.value,
                        fullest->peak_task.empty() ? "no task"
                                                   : fullest->peak_task);
  text += rooms_text(run.rooms);
  return text + plans::basis_of(hardware) + "\n";
}

int simulate_command(const SimulateArguments& arguments) {
  if (!arguments.svg.empty())
    check_out_file(arguments.svg, "--svg");
  if (!arguments.html.empty())
    check_out_file(arguments.html, "--html");
  if (!arguments.trace.empty())
    check_out_file(arguments.trace, "--trace");
  const auto settings = arguments.settings();
  const auto problem = make_problem(settings, arguments);
  const auto named = plan_or_search(settings, problem, arguments);
  const auto report = plans::check_plan(problem, named.plan);
  plans::require_ok(report, places_of_plan(settings, named.name));
  const auto costs = plans::CostModel(problem).with_planned_moves();
  const auto run = plans::simulate(problem, costs, named.plan);
  for (const auto& warning : report.warnings)
    print_note(arguments, "warning: " + warning);
  if (!arguments.svg.empty())
    write_result(arguments.svg, plans::svg_timeline(run));
  if (!arguments.trace.empty())
    write_result(arguments.trace, plans::chrome_timeline(run));
  if (!arguments.html.empty()) {
    HtmlPage page(
      fmt::format("plan {} on {}", named.name, problem.hardware.name));
    page.step("the predicted step", run);
    page.preformatted(simulation_text(run, named.name, problem.hardware));
    write_result(arguments.html, page.print());
  }
  print_out(arguments.json
              ? simulation_json(run, named.name, problem.hardware)
              : simulation_text(run, named.name, problem.hardware));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_plan_simulate(CLI::App& plan, CommandRun& chosen,
                       const PlanHost& host) {
  auto arguments = std::make_shared<SimulateArguments>();
  arguments->host = host;
  auto* command = plan.add_subcommand(
    "simulate", "Predicted step: times, timeline, idle share, memory");
  add_plan_arguments(*command, *arguments);
  add_problem_arguments(*command, *arguments);
  add_html_option(*command, *arguments);
  command->add_option("--svg", arguments->svg, "Write the timeline as SVG");
  command->add_option("--trace", arguments->trace,
                      "Write the timeline for ui.perfetto.dev");
  add_table_options(*command, *arguments);
  command->callback([arguments, &chosen] {
    chosen = [arguments] { return simulate_command(*arguments); };
  });
}

} // namespace troupe::runtime
