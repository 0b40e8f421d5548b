// The frozen weights of a model with adapters on one device: loaded once, never
// moved, updated or saved. Where products read bf16, they have no fp32 masters.
#pragma once

#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"
#include "models/transformer/weights.hpp"

#include <filesystem>

namespace troupe::models {

struct FrozenWeights {
  /// Allocates the part of the model without its adapters. `products` is the
  /// type in which products read weights.
  FrozenWeights(const ModelShape& shape, const Strategy& strategy,
                const Coordinate& where, const net::BlockMemory* memory,
                DType products);
  /// Reads the weights of a model's folder. Throws ConfigError naming file and
  /// tensor. A missing scalar head is left zero.
  void load(const std::filesystem::path& folder);

  LocalModel part;
  Parameters parameters;
};

/// Sets adapters to the start of training (Hu et al. 2021, section 4.1): A is
/// uniform in +-1 / sqrt(in), as PEFT draws it, and B is zero. Each element
/// depends on `seed` and its place in the whole model alone. A scalar head is
/// copied from the frozen weights.
void start_adapters(const LocalModel& part, std::uint64_t seed,
                    const FrozenWeights& frozen, Parameters& adapters);
/// Reads adapters from a PEFT folder. Throws ConfigError naming file and
/// tensor.
void load_adapters(const std::filesystem::path& folder, const LocalModel& part,
                   Parameters& adapters);

} // namespace troupe::models
