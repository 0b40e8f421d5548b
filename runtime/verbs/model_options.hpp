// --model DIR, --strategy, --devices: the model that a verb works on, and the
// devices of this host that it is laid over.
#pragma once

#include "config/strategy.hpp"

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
void add_model_options(CLI::App& verb, ModelOptions& options);

/// The degrees that are meant; ConfigError where they are none.
Strategy strategy_of(const ModelOptions& options);
std::uint32_t num_devices(const ModelOptions& options);

/// The shape in the folder's config.json. ConfigError if there is none, or if
/// its weights are not all there.
ModelShape open_shape(const ModelOptions& options);

} // namespace troupe::runtime
