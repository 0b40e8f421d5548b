// trace export, summary, serve, report, top.
#include "config/base/error.hpp"
#include "runtime/base/human_text.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/launch/stop_signals.hpp"
#include "runtime/page/trace_report.hpp"
#include "runtime/page/trace_server.hpp"
#include "runtime/page/trace_top.hpp"
#include "runtime/run_folder/longest_sample.hpp"
#include "runtime/run_folder/run_status.hpp"
#include "runtime/trace/chrome_trace.hpp"
#include "runtime/trace/trace_summary.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::runtime {

namespace {

struct TraceOptions : CommandOptions {
  std::string folder;
  std::vector<std::string> beside; ///< runs to compare with
  std::string out;
  bool check = false;
  std::string bind = "auto";
  std::uint16_t port = 0;
  bool open = false;
  bool once = false;
};

constexpr auto top_period = std::chrono::seconds{1};

std::string lost_text(const MergedTrace& trace) {
  const auto lost = trace.unmatched_arrows + trace.backward_arrows;
  if (lost == 0 && trace.dropped_events == 0)
    return "";
  return fmt::format("; not drawn: {} arrows with one end, {} dropped events",
                     lost, trace.dropped_events);
}

int export_trace(const TraceOptions& options) {
  const RunFolder folder(options.folder);
  const auto trace = read_run_trace(folder);
  const std::filesystem::path out = options.out.empty()
                                      ? folder.trace_json()
                                      : std::filesystem::path(options.out);
  write_chrome_trace(trace, out);
  print_note(options,
             fmt::format("{}: {} processes, {} slices, {} arrows{}\nopen it at "
                         "https://ui.perfetto.dev or chrome://tracing",
                         out.string(), trace.processes.size(),
                         trace.slices.size(), trace.arrows.size(),
                         lost_text(trace)));
  if (trace.missing.events > 0)
    print_note(options, missing_text(trace.missing));
  if (!options.check)
    return 0;
  const auto check = check_chrome_trace(out);
  for (const auto& problem : check.problems)
    print_note(CommandOptions{}, problem);
  print_note(options,
             fmt::format("checked {} slices and {} arrows: {} problems",
                         check.num_slices, check.num_arrows,
                         check.num_problems));
  return check.num_problems == 0 ? 0 : static_cast<int>(ExitCode::failed);
}

int show_summary(const TraceOptions& options) {
  const RunFolder folder(options.folder);
  auto summary = summarise(read_run_trace(folder), run_causes(folder));
  summary.slowest_sample = longest_sample(folder.samples_file());
  print_out(options.json ? summary_json(summary) : summary_text(summary));
  return 0;
}

RunFolder existing_run(const std::string& name) {
  RunFolder folder(name);
  if (!folder.exists())
    throw ConfigError({.place = {name, 0},
                       .path = "",
                       .expected = "a run folder",
                       .got = "none",
                       .hint = "runs/NAME, the folder of a run"});
  return folder;
}

int report_trace(const TraceOptions& options) {
  const auto folder = existing_run(options.folder);
  const auto out = options.out.empty() ? folder.root() / "report.html"
                                       : std::filesystem::path(options.out);
  const auto bytes = write_trace_report(folder, out);
  print_note(options,
             fmt::format("{}: the page of the run, {:.1f} MB; it needs "
                         "no server and no network",
                         out.string(), static_cast<double>(bytes) / 1e6));
  return 0;
}

int serve_trace(const TraceOptions& options) {
  const auto folder = existing_run(options.folder);
  auto page = page_options(options.bind, options.port);
  for (const auto& name : options.beside)
    page.beside.push_back(existing_run(name));
  TraceServer server(folder, std::move(page));
  print_out(server.url());
  std::cout.flush();
  if (options.open)
    server.open_in_browser();
  std::promise<void> stopped;
  StopSignals signals([&](int) { stopped.set_value(); });
  stopped.get_future().wait();
  return 0;
}

/// Refreshes the view once a second until Ctrl-C or the end of the run.
void watch_top(const RunFolder& folder, TraceTop& top) {
  std::promise<void> stopped;
  StopSignals signals([&](int) { stopped.set_value(); });
  const auto stop = stopped.get_future();
  const auto coloured
    = shows_colours(STDOUT_FILENO) ? run_call_kinds(folder) : CallKinds{};
  for (bool over = false; !over;) {
    const auto status = read_status(folder);
    over = !is_under_way(status);
    // to the corner; erase what is below
    print_out("\033[H\033[J" + top_text(top.look(), status, coloured));
    std::cout.flush();
    if (!over && stop.wait_for(top_period) == std::future_status::ready)
      return;
  }
}

int show_top(const TraceOptions& options) {
  const RunFolder folder(options.folder);
  const auto status = read_status(folder);
  TraceTop top(folder);
  if (options.json || options.once || ::isatty(STDOUT_FILENO) != 1) {
    const auto view = top.look();
    print_out(options.json ? top_json(view, status) : top_text(view, status));
  } else {
    watch_top(folder, top);
  }
  return 0;
}

} // namespace

void add_trace(CLI::App& app, CommandRun& chosen) {
  auto* trace = app.add_subcommand("trace", "Look at what a run's actors did");
  trace->require_subcommand(1);
  auto options = std::make_shared<TraceOptions>();

  auto* to_json = trace->add_subcommand(
    "export", "Write trace.json for Chrome or Perfetto");
  to_json->add_option("run", options->folder, "Run folder")->required();
  to_json->add_option("--out", options->out,
                      "File to write; without it RUN/trace.json");
  to_json->add_flag("--check", options->check,
                    "Then check that every arrow has two ends inside slices");
  add_quiet_option(*to_json, *options);
  to_json->callback([options, &chosen] {
    chosen = [options] { return export_trace(*options); };
  });

  auto* summary = trace->add_subcommand(
    "summary", "Time of a step, critical path, idle time, cost of messages");
  summary->add_option("run", options->folder, "Run folder")->required();
  add_table_options(*summary, *options);
  summary->callback([options, &chosen] {
    chosen = [options] { return show_summary(*options); };
  });

  auto* serve = trace->add_subcommand(
    "serve", "Show a run under way, finished or crashed in a browser");
  serve->add_option("run", options->folder, "Run folder")->required();
  serve->add_option("beside", options->beside, "Runs to compare it with");
  serve->add_option("--port", options->port, "Port; without it any free one")
    ->check(CLI::NonNegativeNumber);
  serve->add_option("--bind", options->bind,
                    "Address to listen on; without it loopback only");
  serve->add_flag("--open", options->open, "Open a browser");
  add_quiet_option(*serve, *options);
  serve->callback([options, &chosen] {
    chosen = [options] { return serve_trace(*options); };
  });

  auto* report = trace->add_subcommand(
    "report", "Write the page of a run as one file, to send by mail");
  report->add_option("run", options->folder, "Run folder")->required();
  report->add_option("--html", options->out,
                     "File to write; without it RUN/report.html");
  add_quiet_option(*report, *options);
  report->callback([options, &chosen] {
    chosen = [options] { return report_trace(*options); };
  });

  auto* top = trace->add_subcommand(
    "top", "What the devices of a run do now, in a terminal");
  top->add_option("run", options->folder, "Run folder")->required();
  top->add_flag("--once", options->once,
                "One look, as where stdout is no terminal");
  add_table_options(*top, *options);
  top->callback(
    [options, &chosen] { chosen = [options] { return show_top(*options); }; });
}

} // namespace troupe::runtime
