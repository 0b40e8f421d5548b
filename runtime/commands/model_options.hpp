// --model DIR, --strategy, --devices: the model that a command works on, and
// the devices of this host that it is placed on.
#pragma once

#include "config/base/strategy.hpp"

#include <cstdint>
#include <string>

namespace CLI {
class App;
}
namespace troupe {
struct ModelShape;
}

namespace troupe::runtime {

struct ModelOptions {
  std::string model;         ///< HF folder
  std::string strategy;      ///< "d2t2"; "": data-parallel over `devices`
  std::uint32_t devices = 0; ///< 0: as many as the strategy needs
};
void add_model_options(CLI::App& command, ModelOptions& options);

/// Returns the strategy that the options describe. Throws ConfigError if they
/// describe none.
Strategy strategy_of(const ModelOptions& options);
std::uint32_t num_devices(const ModelOptions& options);

/// Reads the shape in the folder's config.json. Throws ConfigError if there is
/// none, or if the weights are incomplete.
ModelShape open_shape(const ModelOptions& options);

} // namespace troupe::runtime
