// troupe-bench NAME [--card C] [--cards FILE] [--threads T] [--runs N]
// [--clock wall|cpu] [--dtype D] [--json OUT]: one benchmark, one JSON
// document.
#include "config/version.hpp"

#include <ATen/Parallel.h>

#include "bench.hpp"
#include "troupe/app.hpp"

#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace troupe::bench {
namespace {

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> all{
    {"collectives", "rate of sums over devices beside Gloo",
     &bench_collectives},
    {"control", "microseconds of an empty task, idle processor time",
     &bench_control},
    {"generate", "prefill and decode tokens a second", &bench_generate},
    {"grpo", "seconds of a GRPO iteration of the whole program", &bench_grpo},
    {"move", "rate of weight moves beside memcpy", &bench_move},
    {"ppo", "seconds of a PPO iteration of the whole program", &bench_ppo},
    {"products", "GFLOP/s of the products of a training step", &bench_products},
    {"search", "seconds of plan searches for 8 to 1,024 devices",
     &bench_search},
    {"simulate", "simulated PPO steps a second", &bench_simulate},
    {"trace", "nanoseconds of an event, share of a step", &bench_trace},
    {"train", "tokens a second of whole optimizer steps", &bench_train},
  };
  return all;
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0)
      return line.substr(line.find(':') + 2);
  return "unknown";
}

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  if (arguments.size() % 2 != 0)
    throw std::runtime_error("every option takes a value");
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& word = arguments[i];
    const std::string& value = arguments[i + 1];
    if (word == "--card")
      options.card = value;
    else if (word == "--cards")
      options.cards = value;
    else if (word == "--threads")
      options.threads = std::stoi(value);
    else if (word == "--runs")
      options.runs = std::stoi(value);
    else if (word == "--dtype")
      options.dtype = value;
    else if (word == "--clock" && (value == "wall" || value == "cpu"))
      options.cpu_clock = value == "cpu";
    else if (word == "--plan")
      options.plan = value;
    else if (word == "--json")
      options.json = value;
    else
      throw std::runtime_error("unknown option " + word);
  }
  if (options.runs < 1 || options.threads < 1)
    throw std::runtime_error("--runs and --threads are at least 1");
  return options;
}

int run_benchmark(const std::string& name, const Options& options) {
  for (const Benchmark& benchmark : benchmarks()) {
    if (benchmark.name != name)
      continue;
    at::set_num_threads(options.threads);
    nlohmann::json document = benchmark.run(options);
    document["bench"] = name;
    document["card"] = options.card;
    document["dtype"] = options.dtype;
    document["threads"] = options.threads;
    document["clock"] = options.cpu_clock ? "cpu" : "wall";
    document["version"] = version_text();
    document["cpu"] = processor();
    if (!options.json.empty())
      std::ofstream(options.json) << document.dump(1) << '\n';
    std::printf("%s\n", document.dump().c_str());
    return 0;
  }
  throw std::runtime_error("no benchmark '" + name + "'");
}

int usage(int code) {
  std::puts("troupe-bench NAME [--card tiny|small|medium] [--cards FILE] "
            "[--threads T] [--runs N] [--clock wall|cpu] [--dtype fp32|bf16] "
            "[--plan single|data_parallel|tensor] [--json OUT]");
  for (const Benchmark& benchmark : benchmarks())
    std::printf("  %-12s %s\n", benchmark.name.c_str(),
                benchmark.sentence.c_str());
  return code;
}

} // namespace
} // namespace troupe::bench

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty() || arguments.front() == "--help")
    return troupe::bench::usage(arguments.empty() ? 2 : 0);
  if (arguments.front() == "worker") // of `control`: a run takes its own binary
    return troupe::App{}.main(argc, argv);
  try {
    return troupe::bench::run_benchmark(
      arguments.front(),
      troupe::bench::parse_options({arguments.begin() + 1, arguments.end()}));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
