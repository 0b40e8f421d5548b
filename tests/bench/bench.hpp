// Shared by the benchmarks: options of the command line, the model
// configurations of cards.json, timing and the JSON document that each prints
// as its last line (docs/benchmarks.md).
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace troupe {
enum class DType : std::uint8_t;
struct ModelShape;
} // namespace troupe

namespace troupe::bench {

struct Options {
  std::string card = "tiny";
  std::filesystem::path cards; ///< default: $TROUPE_SHARED/bench/cards.json
  int threads = 1;
  int runs = 5;
  /// The plan of runs of the whole program: `single`, one device with all
  /// threads, or `data_parallel`, one device per thread.
  std::string plan = "data_parallel";
  std::string dtype = "fp32";
  /// Processor time of the process instead of wall time: for busy machines,
  /// meaningful with one thread only.
  bool cpu_clock = false;
  std::uint32_t devices = 1024; ///< of the largest cluster of `scale`
  std::filesystem::path json;   ///< also written here, if not empty
};

/// A benchmark: measures and returns its part of the document.
struct Benchmark {
  std::string name;
  std::string sentence; ///< for --help
  nlohmann::json (*run)(const Options&);
};

/// Returns the requested card: {"model": ..., "generate": ..., "train": ...,
/// "ppo": ...}.
nlohmann::json read_card(const Options& options);
/// A LLaMA of the card's shape.
ModelShape shape_of(const nlohmann::json& card);

/// Returns the type of `--dtype`.
DType dtype_of(const Options& options);
/// Returns seconds by the clock that `options` name.
double seconds_of(const Options& options, const std::function<void()>& work);
/// Returns {"median", "min", "max", "n"}.
nlohmann::json summary(std::vector<double> numbers);
/// Returns the headline of a document: NAME (the median), NAME_min, NAME_max,
/// n.
void add_headline(nlohmann::json& document, const std::string& name,
                  std::vector<double> numbers);

// -- the benchmarks
// -------------------------------------------------------------

nlohmann::json bench_collectives(const Options& options);
nlohmann::json bench_control(const Options& options);
nlohmann::json bench_generate(const Options& options);
nlohmann::json bench_grpo(const Options& options);
nlohmann::json bench_move(const Options& options);
nlohmann::json bench_ppo(const Options& options);
nlohmann::json bench_products(const Options& options);
nlohmann::json bench_scale(const Options& options);
nlohmann::json bench_search(const Options& options);
nlohmann::json bench_server(const Options& options);
nlohmann::json bench_simulate(const Options& options);
nlohmann::json bench_trace(const Options& options);
nlohmann::json bench_train(const Options& options);

} // namespace troupe::bench
