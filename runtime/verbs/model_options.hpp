// --model DIR and how the verbs that work on one model open it: on one device
// of this process, with all cores.
#pragma once

#include "models/engine.hpp"

#include <memory>
#include <string>

namespace CLI {
class App;
}
namespace troupe {
struct ModelShape;
}

namespace troupe::runtime {

struct ModelOptions {
  std::string model; ///< HF folder
  std::string strategy = "d1";
  int devices = 1;
};
/// --model, --strategy, --devices.
void add_model_options(CLI::App& verb, ModelOptions& options);

/// The shape in the folder's config.json. ConfigError if there is none, or if
/// the strategy is more than this version runs here.
ModelShape open_shape(const ModelOptions& options);
/// Loads the weights.
std::unique_ptr<models::Engine> open_engine(const ModelOptions& options,
                                            const ModelShape& shape,
                                            std::uint64_t seed);

/// Samples that go through an engine at once: bounds the memory of a verb.
inline constexpr std::uint32_t verb_batch_samples = 512;

} // namespace troupe::runtime
