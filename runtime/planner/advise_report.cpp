#include "runtime/planner/advise_report.hpp"

#include "plans/cost/hardware_sources.hpp"
#include "runtime/base/human_text.hpp"
#include "runtime/base/text_table.hpp"
#include "runtime/planner/html_page.hpp"
#include "runtime/planner/plan_basis.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t most_columns = 100;

/// Returns the kinds of sources of a section's numbers: "data sheet, assumed".
std::string kinds_of(const plans::Hardware& hardware,
                     const std::string& beginning) {
  std::set<plans::SourceKind> kinds;
  for (const auto& [field, source] : hardware.sources)
    if (field.starts_with(beginning))
      kinds.insert(plans::kind_of_source(source));
  std::string text;
  for (const auto kind : kinds)
    text += (text.empty() ? "" : ", ") + std::string(plans::to_string(kind));
  return text.empty() ? "given" : text;
}

/// Breaks a text at blanks, with `indent` before each further line.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::string lines;
  auto at = std::min(text.find_first_not_of(' '), text.size());
  auto line = text.substr(0, at);
  bool is_empty = true;
  while (at < text.size()) {
    const auto end = std::min(text.find(' ', at), text.size());
    const auto word = text.substr(at, end - at);
    if (!is_empty && line.size() + 1 + word.size() > most_columns) {
      lines += line + "\n";
      line = indent + word;
    } else {
      line += (is_empty ? "" : " ") + word;
    }
    is_empty = false;
    at = end + 1;
  }
  return lines + line + "\n";
}

/// Returns idle seconds without the rounding of sums of long times.
double idle_s(double seconds, double step_s) {
  return seconds < 1e-6 * step_s ? 0 : seconds;
}

struct DevicesAlike {
  std::vector<Rank> devices;
  const plans::DeviceUse* use;
};

/// Returns devices that do and hold the same as one.
std::vector<DevicesAlike> alike(const plans::Simulation& run) {
  std::vector<DevicesAlike> groups;
  for (const auto& device : run.devices) {
    const auto same = std::ranges::find_if(groups, [&](const auto& group) {
      return group.use->peak_bytes == device.peak_bytes
             && group.use->peak_task == device.peak_task
             && group.use->busy_s == device.busy_s
             && group.use->kind == device.kind;
    });
    if (same == groups.end())
      groups.push_back({{device.device}, &device});
    else
      same->devices.push_back(device.device);
  }
  return groups;
}

double memory_bytes(const plans::ClusterHardware& hardware,
                    const std::string& kind) {
  for (const auto& one : hardware.kinds)
    if (one.hardware.name == kind)
      return one.hardware.mem_bytes;
  return hardware.mem_bytes;
}

std::string memory_of(const plans::Simulation& run,
                      const plans::ClusterHardware& hardware) {
  TextTable table(
    {"devices", ">peak GB", ">of GB", "in", ">busy s", ">idle s"});
  for (const auto& [devices, use] : alike(run))
    table.row({plans::print_devices(devices)
                 + (use->kind.empty() ? "" : " (" + use->kind + ")"),
               three_digits(static_cast<double>(use->peak_bytes) / 1e9),
               three_digits(memory_bytes(hardware, use->kind) / 1e9),
               use->peak_task, three_digits(use->busy_s),
               three_digits(idle_s(use->idle.total_s(), run.step_s))});
  return table.print(2);
}

/// Returns the seconds of each call, from the last step.
std::string calls_of(const plans::Simulation& run, double step_s) {
  TextTable table({"call", "devices", ">s", ">of step"});
  for (std::size_t i = 0; i < run.graph.tasks.size(); ++i) {
    const auto& task = run.graph.tasks[i];
    if (run.durations_s[i] < step_s / 1000)
      continue;
    table.row({task.name, plans::print_devices(task.devices),
               three_digits(run.durations_s[i]),
               fmt::format("{:.0f} %", 100 * run.durations_s[i] / step_s)});
  }
  return table.print(2);
}

std::string gain_text(const AdvisedPlan& plan, const AdvisedPlan& own) {
  if (!plan.run || !own.run)
    return "";
  const auto share = 1 - plan.run->step_s / own.run->step_s;
  constexpr double least = 0.001;
  if (std::abs(share) < least)
    return ", as what it runs";
  return fmt::format(", {:.1f} % {}", 100 * std::abs(share),
                     share > 0 ? "less" : "more");
}

std::string cost_text(const AdviceReport& report, double step_s,
                      std::uint32_t devices) {
  return report.price > 0 ? fmt::format(", {:.2f} a step",
                                        step_s / 3600 * report.price * devices)
                          : "";
}

std::string plan_text(const AdviceReport& report, const AdvisedPlan& plan,
                      bool with_calls) {
  auto text = "\n" + plan.what + ":\n";
  if (!plan.layout.empty())
    text += wrapped("  " + plan.layout, "    ");
  if (!plan.run)
    return text + wrapped("  cannot run: " + plan.why_not, "    ");
  const auto& run = *plan.run;
  text += fmt::format(
    "  step {} s{}{}   [predicted from: {}]\n", three_digits(run.step_s),
    plan.what == report.own.what ? "" : gain_text(plan, report.own),
    cost_text(report, run.step_s, plan.plan.cluster.num_devices()),
    kinds_of(report.hardware, ""));
  if (with_calls)
    text += calls_of(run, run.step_s);
  text += memory_of(run, report.hardware);
  text
    += fmt::format("  memory [computed from the models' shapes; limit: {}]\n",
                   kinds_of(report.hardware, "device.mem_bytes"));
  text += fmt::format("  idle {:.1f} % of device time\n", 100 * run.idle_share);
  for (const auto& reason : plans::idle_reasons(run))
    text += wrapped(fmt::format("    {} s a device wait for {}; less with {}",
                                three_digits(reason.seconds), reason.what,
                                reason.remedy),
                    "      ");
  return text;
}

std::string flags_text(const AdvisedPlan& plan) {
  if (plan.flags.empty())
    return "  no flag changes\n";
  std::string text = "  its flags:\n";
  for (const auto& flag : plan.flags)
    text += "    " + plans::print(flag) + "\n";
  return text;
}

std::string indented(const std::string& text) {
  std::string lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find('\n', at), text.size());
    lines += "    " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return lines;
}

std::string clusters_text(const AdviceReport& report) {
  if (report.clusters.empty())
    return "";
  const bool ours = report.system == "troupe";
  std::vector<std::string> titles = {">devices"};
  if (!ours) {
    titles.emplace_back(">as it is s");
    titles.push_back(">best of " + report.system + " s");
  }
  titles.emplace_back(">best of all s");
  if (report.price > 0)
    titles.emplace_back(">cost of 1,000 steps");
  TextTable table(titles);
  const auto cell = [](const std::optional<double>& seconds) {
    return seconds ? three_digits(*seconds) : std::string("-");
  };
  for (const auto& row : report.clusters) {
    std::vector<std::string> cells = {std::to_string(row.devices)};
    if (!ours) {
      cells.push_back(cell(row.own_s));
      cells.push_back(cell(row.system_s));
    }
    cells.push_back(cell(row.best_s));
    const auto& paid = ours ? row.best_s : row.system_s;
    if (report.price > 0)
      cells.push_back(paid
                        ? fmt::format("{:.0f}", 1000 * *paid / 3600
                                                  * report.price * row.devices)
                        : "-");
    table.row(std::move(cells));
  }
  auto source = fmt::format("  times [predicted from: {}]",
                            kinds_of(report.hardware, ""));
  if (report.price > 0)
    source += fmt::format(
      "; cost of {} [price given: {} a device and hour]",
      ours ? "the best plan" : "the best of " + report.system, report.price);
  return "\nsteps of the same work on other clusters:\n" + table.print(2)
         + wrapped(source, "    ");
}

Json plan_json(const AdvisedPlan& plan) {
  auto flags = Json::object();
  for (const auto& flag : plan.flags)
    flags[flag.key]
      = flag.is_switch ? Json(flag.value == "True") : Json(flag.value);
  auto devices = Json::array();
  auto reasons = Json::array();
  if (plan.run) {
    for (const auto& device : plan.run->devices)
      devices.push_back({{"device", device.device.value},
                         {"busy_s", device.busy_s},
                         {"idle_s", device.idle.total_s()},
                         {"peak_bytes", device.peak_bytes},
                         {"peak_task", device.peak_task}});
    for (const auto& reason : plans::idle_reasons(*plan.run))
      reasons.push_back({{"seconds", reason.seconds},
                         {"waits_for", reason.what},
                         {"remedy", reason.remedy}});
  }
  return {
    {"fits", plan.run.has_value()},
    {"reason", plan.why_not},
    {"layout", plan.layout},
    {"step_s", plan.run ? Json(plan.run->step_s) : Json()},
    {"idle_share", plan.run ? Json(plan.run->idle_share) : Json()},
    {"idle", std::move(reasons)},
    {"devices", std::move(devices)},
    {"flags", std::move(flags)},
    {"plan", plan.plan.calls.empty() ? Json() : Json(plans::print(plan.plan))}};
}

} // namespace

std::string advice_text(const AdviceReport& report) {
  auto text = wrapped(report.subject, "  ");
  text += report.lengths_are_given
            ? "responses [lengths given]\n"
            : "responses [assumed: all as long as allowed; --response-tokens "
              "MEAN:MAX says otherwise]\n";
  text += plan_text(report, report.own, /*with_calls=*/true);
  if (report.what_if)
    text += plan_text(report, *report.what_if, /*with_calls=*/true)
            + flags_text(*report.what_if);
  if (report.of_system)
    text += plan_text(report, *report.of_system, /*with_calls=*/true)
            + flags_text(*report.of_system);
  else if (report.system != "troupe")
    text += fmt::format("\nno layout that {} can run fits these devices\n",
                        report.system);
  if (report.best) {
    text += plan_text(report, *report.best, /*with_calls=*/true);
    text += wrapped(
      fmt::format("  lower bound {} s [predicted as the step]: {}",
                  report.bound.step_s > 0 ? three_digits(report.bound.step_s)
                                          : "-",
                  report.bound.proof),
      "    ");
    text
      += "  as a plan of ours:\n" + indented(plans::print(report.best->plan));
  }
  if (!report.inexpressible.empty()) {
    text += fmt::format("  what {} cannot be told:\n", report.system);
    for (const auto& sentence : report.inexpressible)
      text += wrapped("  - " + sentence, "    ");
  }
  text += clusters_text(report);
  return text + "\n"
         + wrapped("all times are those of our cost model for these layouts, "
                   "not of "
                     + (report.system == "troupe" ? std::string("a run")
                                                  : report.system + "'s code"),
                   "  ")
         + plans::basis_of(report.hardware) + "\n";
}

std::string advice_page(const AdviceReport& report) {
  HtmlPage page("advice for " + report.subject);
  std::vector<const AdvisedPlan*> plans = {&report.own};
  for (const auto* other : {&report.what_if, &report.of_system, &report.best})
    if (*other)
      plans.push_back(&**other);
  std::vector<HtmlBar> bars;
  for (const auto* plan : plans)
    if (plan->run)
      bars.push_back(
        {plan->what, plan->run->step_s,
         fmt::format("idle {:.0f} %", 100 * plan->run->idle_share)});
  if (report.bound.step_s > 0)
    bars.push_back({"lower bound", report.bound.step_s});
  page.bars(bars, "s a step");
  for (const auto* plan : plans)
    if (plan->run)
      page.step(plan->what + (plan->layout.empty() ? "" : ": " + plan->layout),
                *plan->run);
  page.heading("in words");
  page.preformatted(advice_text(report));
  return page.print();
}

std::string advice_json(const AdviceReport& report) {
  const auto optional = [](const std::optional<AdvisedPlan>& plan) {
    return plan ? plan_json(*plan) : Json();
  };
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  auto clusters = Json::array();
  for (const auto& row : report.clusters)
    clusters.push_back({{"devices", row.devices},
                        {"own_s", number(row.own_s)},
                        {"system_s", number(row.system_s)},
                        {"best_s", number(row.best_s)}});
  return Json{{"system", report.system},
              {"subject", report.subject},
              {"basis", basis_json(report.hardware)},
              {"sources",
               {{"times", kinds_of(report.hardware, "")},
                {"memory", kinds_of(report.hardware, "device.mem_bytes")},
                {"lengths", report.lengths_are_given ? "given" : "assumed"},
                {"price", "given"}}},
              {"own", plan_json(report.own)},
              {"what_if", optional(report.what_if)},
              {"best_of_system", optional(report.of_system)},
              {"best", optional(report.best)},
              {"lower_bound_s", report.bound.step_s},
              {"proof", report.bound.proof},
              {"inexpressible", report.inexpressible},
              {"clusters", std::move(clusters)},
              {"price", report.price}}
    .dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace troupe::runtime
