// Cost of tracing: nanoseconds per event, and the step time of a whole PPO run
// with tracing on and off, in turns.
#include "config/trace/trace.hpp"
#include "config/trace/trace_file.hpp"

#include "card_folder.hpp"
#include "troupe_run.hpp"

#include <numeric>
#include <stdexcept>

namespace troupe::bench {
namespace {

constexpr int untimed_steps = 2;
constexpr int rounds = 3; // of on, off, off, on

// Bursts that fit the ring, drained in between: dropped events would be cheap.
std::vector<double> nanoseconds_per_event(const std::filesystem::path& file) {
  constexpr int burst = 2000; // spans
  trace::start(file, "bench", 1);
  const auto track = trace::track("bench", trace::TrackKind::device);
  const auto name = trace::name("span");
  std::vector<double> all;
  Options wall;
  for (int i = 0; i < 50; ++i) {
    const double seconds = seconds_of(wall, [&] {
      for (std::uint32_t j = 0; j < burst; ++j)
        trace::Span span(track, name, j);
    });
    trace::flush();
    all.push_back(1e9 * seconds / (2 * burst));
  }
  const bool dropped = trace::dropped() > 0;
  trace::stop();
  if (dropped)
    throw std::runtime_error("events were dropped: the figure means nothing");
  return all;
}

struct Side {
  std::vector<double> wall_s;
  std::vector<double> cpu_s;

  void add(const RunSteps& steps) {
    // neither the warm-up nor the last step, which writes a checkpoint
    for (std::size_t i = untimed_steps; i + 1 < steps.wall_s.size(); ++i) {
      wall_s.push_back(steps.wall_s[i]);
      cpu_s.push_back(steps.cpu_s[i]);
    }
  }
};

std::size_t events_of(const std::filesystem::path& run_folder) {
  std::size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(run_folder / "trace"))
    if (entry.path().extension() == ".events")
      count += trace::read_trace(entry.path()).events.size();
  return count;
}

double share(const std::vector<double>& on, const std::vector<double>& off) {
  return summary(on)["median"].get<double>()
           / summary(off)["median"].get<double>()
         - 1;
}

} // namespace

nlohmann::json bench_trace(const Options& options) {
  const CardFolder folder(read_card(options));
  const auto event_ns
    = summary(nanoseconds_per_event(folder.root() / "bench.events"));
  Side sides[2];
  double events = 0;
  int number = 0;
  for (int round = 0; round < rounds; ++round)
    for (const bool on : {true, false, false, true}) {
      RunRequest request;
      request.threads = options.threads;
      const std::string name = "trace" + std::to_string(number++);
      request.run_folder = folder.root() / "runs" / name;
      request.settings = folder.ppo_settings();
      for (const std::string& word :
           {"run.name=" + name,
            "run.steps=" + std::to_string(untimed_steps + options.runs + 1),
            std::string("cluster.nodes=1"),
            std::string("cluster.devices_per_node=1"),
            std::string("cluster.workers_per_node=1"),
            std::string("cluster.device=cpu"), std::string("plan=single"),
            std::string("trace.enabled=") + (on ? "true" : "false")})
        request.settings.push_back(word);
      const RunSteps steps = run_steps(request);
      sides[on ? 1 : 0].add(steps);
      if (on)
        events = static_cast<double>(events_of(request.run_folder))
                 / static_cast<double>(steps.wall_s.size());
    }
  const Side& on = sides[1];
  const Side& off = sides[0];
  const double step_s = summary(off.wall_s)["median"];
  return {{"ns_per_event", event_ns["median"]},
          {"ns_per_event_min", event_ns["min"]},
          {"ns_per_event_max", event_ns["max"]},
          {"n", on.wall_s.size()},
          {"overhead_wall", share(on.wall_s, off.wall_s)},
          {"overhead_cpu", share(on.cpu_s, off.cpu_s)},
          {"step_on_s", summary(on.wall_s)},
          {"step_off_s", summary(off.wall_s)},
          {"step_on_cpu_s", summary(on.cpu_s)},
          {"step_off_cpu_s", summary(off.cpu_s)},
          {"events_per_step", events},
          {"recording_share",
           events * 1e-9 * event_ns["median"].get<double>() / step_s}};
}

} // namespace troupe::bench
