#include "runtime/verbs/model_options.hpp"

#include "config/error.hpp"
#include "config/model_shape.hpp"
#include "models/hf_folder.hpp"
#include "models/threads.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace troupe::runtime {

namespace {

void check_strategy(const ModelOptions& options) {
  Strategy strategy;
  try {
    strategy = parse_strategy(options.strategy);
  } catch (const std::invalid_argument& error) {
    throw ConfigError({.place = {"command line", 0},
                       .path = "--strategy",
                       .expected = "degrees such as d2t2",
                       .got = "'" + options.strategy + "'",
                       .hint = error.what()});
  }
  if (strategy != Strategy{} || options.devices != 1)
    throw ConfigError(
      {.place = {"command line", 0},
       .path = "--strategy",
       .expected = "d1 on 1 device, which uses all cores, in this version",
       .got
       = fmt::format("{} on {} devices", options.strategy, options.devices),
       .hint = "without --strategy and --devices"});
}

} // namespace

void add_model_options(CLI::App& verb, ModelOptions& options) {
  verb.add_option("--model", options.model, "Hugging Face folder")
    ->type_name("DIR")
    ->required();
  verb.add_option("--strategy", options.strategy, "Degrees, such as d1")
    ->capture_default_str();
  verb.add_option("--devices", options.devices, "Number of devices")
    ->capture_default_str();
}

ModelShape open_shape(const ModelOptions& options) {
  check_strategy(options);
  models::require_model_folder(options.model, "--model");
  return read_model_shape(options.model);
}

std::unique_ptr<models::Engine> open_engine(const ModelOptions& options,
                                            const ModelShape& shape,
                                            std::uint64_t seed) {
  models::set_compute_threads(
    static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  models::Engine::Spec spec;
  spec.folder = options.model;
  spec.role = "model";
  spec.scalar_head = shape.scalar_head;
  spec.seed = seed;
  auto engine = std::make_unique<models::Engine>(std::move(spec));
  engine->load_weights();
  return engine;
}

} // namespace troupe::runtime
