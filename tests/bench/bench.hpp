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

/// Sizes in place of the card's; 0: the card's.
struct Sizes {
  int batch = 0;
  int layers = 0; ///< of the model: so that a part of a large one fits a GPU
  int tokens = 0; ///< of a prompt, of a sequence that is trained on
  int new_tokens = 0;
  int mib = 64; ///< of a block of `memory` and `sums`
};

struct Options {
  std::string card = "tiny";
  std::filesystem::path cards; ///< default: $TROUPE_SHARED/bench/cards.json
  int threads = 1;
  int runs = 5;
  /// The plan of runs of the whole program: `single`, one device with all
  /// threads, or `data_parallel`, one device per thread.
  std::string plan = "data_parallel";
  std::string dtype = "fp32";
  std::string device = "cpu"; ///< cpu or gpu
  Sizes sizes;
  bool recompute = false; ///< activations, in `train`
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
/// Returns a LLaMA of the card's shape.
ModelShape shape_of(const nlohmann::json& card);
/// Returns the same with `--layers` layers.
ModelShape shape_of(const nlohmann::json& card, const Options& options);
/// Returns `given`, or the card's number where it is 0.
std::int64_t size_or(int given, const nlohmann::json& of_card);

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
nlohmann::json bench_decode(const Options& options);
nlohmann::json bench_device_move(const Options& options);
nlohmann::json bench_generate(const Options& options);
nlohmann::json bench_grpo(const Options& options);
nlohmann::json bench_memory(const Options& options);
nlohmann::json bench_move(const Options& options);
nlohmann::json bench_ppo(const Options& options);
nlohmann::json bench_products(const Options& options);
nlohmann::json bench_scale(const Options& options);
nlohmann::json bench_search(const Options& options);
nlohmann::json bench_server(const Options& options);
nlohmann::json bench_simulate(const Options& options);
nlohmann::json bench_sums(const Options& options);
nlohmann::json bench_trace(const Options& options);
nlohmann::json bench_train(const Options& options);

} // namespace troupe::bench
