#include "runtime/commands/model_options.hpp"

#include "config/base/error.hpp"
#include "config/model/model_shape.hpp"
#include "models/hf/hf_folder.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace troupe::runtime {

void add_model_options(CLI::App& command, ModelOptions& options) {
  command.add_option("--model", options.model, "Hugging Face folder")
    ->type_name("DIR")
    ->required();
  command.add_option("--strategy", options.strategy,
                     "Degrees over the devices, such as d2; without it, "
                     "data-parallel");
  command
    .add_option("--devices", options.devices,
                "Number of devices, which share the cores; without it, as many "
                "as --strategy needs")
    ->check(CLI::PositiveNumber);
}

Strategy strategy_of(const ModelOptions& options) {
  if (options.strategy.empty())
    return {.dp = std::max(1U, options.devices)};
  try {
    return parse_strategy(options.strategy);
  } catch (const std::invalid_argument& error) {
    throw ConfigError(
      {.place = {"command line", 0},
       .path = "--strategy",
       .expected = "degrees such as d2t2",
       .got = fmt::format("'{}' ({})", options.strategy, error.what()),
       .hint = "d2"});
  }
}

std::uint32_t num_devices(const ModelOptions& options) {
  return options.devices > 0 ? options.devices
                             : strategy_of(options).num_devices();
}

ModelShape open_shape(const ModelOptions& options) {
  models::require_model_folder(options.model, "--model");
  auto shape = read_model_shape(options.model);
  models::open_model_weights(options.model, shape);
  return shape;
}

} // namespace troupe::runtime
