// troupe-bench NAME [--card C] [--cards FILE] [--threads T] [--runs N]
// [--clock wall|cpu] [--dtype D] [--device cpu|gpu] [--json OUT]: one
// benchmark, one JSON document.
#include "config/base/error.hpp"
#include "config/base/version.hpp"

#include <ATen/Parallel.h>

#include "bench.hpp"
#include "fake_workers.hpp"
#include "troupe/app.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>

namespace troupe::bench {
namespace {

const std::vector<Benchmark>& benchmarks() {
  static const std::vector<Benchmark> all{
    {"collectives", "rate of sums over devices beside Gloo",
     &bench_collectives},
    {"control", "microseconds of an empty task, idle processor time",
     &bench_control},
    {"decode", "milliseconds of a decoded token of an engine, cpu or gpu",
     &bench_decode},
    {"device_move", "rate of a move inside one device beside its copy rate",
     &bench_device_move},
    {"generate", "prefill and decode tokens a second", &bench_generate},
    {"grpo", "seconds of a GRPO iteration of the whole program", &bench_grpo},
    {"memory", "rates of a device's memory, and whether it keeps its bytes",
     &bench_memory},
    {"move", "rate of weight moves beside memcpy", &bench_move},
    {"ppo", "seconds of a PPO iteration of the whole program", &bench_ppo},
    {"products", "GFLOP/s of the products of a training step", &bench_products},
    {"scale", "processor time of the master's step for 16 to 1,024 devices",
     &bench_scale},
    {"search", "seconds of plan searches for 8 to 1,024 devices",
     &bench_search},
    {"server", "rates of both routes of weights to a server, beside memcpy",
     &bench_server},
    {"simulate", "simulated PPO steps a second", &bench_simulate},
    {"sums", "bus rate of sums over devices, cpu or gpu", &bench_sums},
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

[[noreturn]] void wrong(const std::string& option, const std::string& expected,
                        const std::string& got) {
  throw ConfigError({.place = {"command line", 0},
                     .path = option,
                     .expected = expected,
                     .got = got.empty() ? "nothing" : "'" + got + "'",
                     .hint = "`troupe-bench --help`"});
}

int count_of(const std::string& option, const std::string& text) {
  int count = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc{} || last != end || count < 1)
    wrong(option, "a whole number > 0", text);
  return count;
}

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  Sizes& sizes = options.sizes;
  const std::map<std::string, int*> counts{{"--threads", &options.threads},
                                           {"--runs", &options.runs},
                                           {"--batch", &sizes.batch},
                                           {"--layers", &sizes.layers},
                                           {"--tokens", &sizes.tokens},
                                           {"--new-tokens", &sizes.new_tokens},
                                           {"--mib", &sizes.mib}};
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& word = arguments[i];
    const std::string value = i + 1 < arguments.size() ? arguments[i + 1] : "";
    if (value.empty())
      wrong(word, "a value", value);
    if (word == "--card")
      options.card = value;
    else if (word == "--cards")
      options.cards = value;
    else if (const auto count = counts.find(word); count != counts.end())
      *count->second = count_of(word, value);
    else if (word == "--devices")
      options.devices = static_cast<std::uint32_t>(count_of(word, value));
    else if (word == "--dtype")
      options.dtype = value;
    else if (word == "--clock" && (value == "wall" || value == "cpu"))
      options.cpu_clock = value == "cpu";
    else if (word == "--device" && (value == "cpu" || value == "gpu"))
      options.device = value;
    else if (word == "--recompute" && (value == "on" || value == "off"))
      options.recompute = value == "on";
    else if (word == "--plan")
      options.plan = value;
    else if (word == "--json")
      options.json = value;
    else
      wrong("", "an option of troupe-bench with its value", word + " " + value);
  }
  return options;
}

/// Returns the headline's spread under names that no benchmark changes.
void add_spread(nlohmann::json& document) {
  const auto named = document;
  for (const auto& [name, value] : named.items())
    if (name.ends_with("_min"))
      document["min"] = value;
    else if (name.ends_with("_max"))
      document["max"] = value;
}

std::string names_of_benchmarks() {
  std::string names;
  for (const auto& benchmark : benchmarks())
    names += (names.empty() ? "" : ", ") + benchmark.name;
  return names;
}

int run_benchmark(const std::string& name, const Options& options) {
  for (const Benchmark& benchmark : benchmarks()) {
    if (benchmark.name != name)
      continue;
    at::set_num_threads(options.threads);
    std::ofstream file; // detected before minutes of work
    if (!options.json.empty()) {
      file.open(options.json);
      if (!file)
        wrong("--json", "a file that can be written", options.json.string());
    }
    nlohmann::json document = benchmark.run(options);
    add_spread(document);
    document["bench"] = name;
    document["card"] = options.card;
    document["dtype"] = options.dtype;
    document["device"] = options.device;
    document["threads"] = options.threads;
    document["clock"] = options.cpu_clock ? "cpu" : "wall";
    document["version"] = version_text();
    document["cpu"] = processor();
    if (file.is_open())
      file << document.dump(1) << '\n';
    std::printf("%s\n", document.dump().c_str());
    return 0;
  }
  wrong("", "a benchmark (" + names_of_benchmarks() + ")", name);
}

int usage(int code) {
  std::puts("troupe-bench NAME [--card CARD] [--cards FILE] "
            "[--threads T] [--runs N] [--clock wall|cpu] [--dtype fp32|bf16] "
            "[--plan single|data_parallel|tensor] [--devices N] "
            "[--device cpu|gpu] [--batch N] [--layers N] [--tokens N] "
            "[--new-tokens N] [--mib N] [--recompute on|off] [--json OUT]");
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
  if (arguments.empty())
    return troupe::bench::usage(2);
  if (arguments.front() == "worker") // of `control`: a run takes its own binary
    return troupe::App{}.main(argc, argv);
  if (arguments.front() == troupe::bench::fake_workers_verb) // of `scale`
    return troupe::bench::run_fake_workers(
      {arguments.begin() + 1, arguments.end()});
  if (std::ranges::find(arguments, "--help") != arguments.end())
    return troupe::bench::usage(0);
  try {
    return troupe::bench::run_benchmark(
      arguments.front(),
      troupe::bench::parse_options({arguments.begin() + 1, arguments.end()}));
  } catch (const troupe::ConfigError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
