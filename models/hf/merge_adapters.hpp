// A model with its adapters added to its weights, as a folder without adapters.
#pragma once

#include "config/base/dtype.hpp"
#include "models/hf/safetensors.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe::models {

/// Writes base weights plus scale B A of each adapter of a PEFT folder to a new
/// Hugging Face folder; the sum is in fp32. Throws ConfigError for folders that
/// do not fit each other, FailureError (io) naming the path.
void merge_adapters(const std::filesystem::path& base,
                    const std::filesystem::path& adapters,
                    const std::filesystem::path& out, DType stored,
                    const StoreOptions& store);

} // namespace troupe::models
