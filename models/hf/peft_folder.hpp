// Adapters as a PEFT folder: adapter_config.json and adapter_model.safetensors,
// with the tokenizer's files of the model that they adapt. peft and vLLM load
// what is written here.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/hf/hf_folder.hpp"
#include "models/hf/safetensors.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::models {

/// Returns whether the folder holds adapters.
bool is_peft_folder(const std::filesystem::path& folder);

/// The content of an adapter_config.json.
struct PeftConfig {
  std::string base_model; ///< path or name of the model that they adapt
  LoraShape lora;
};
/// Reads it. Throws ConfigError for what cannot be read or is no plain LoRA.
PeftConfig read_peft_config(const std::filesystem::path& folder);

/// Opens the adapters of `shape` and checks that each is there with its shape.
/// Throws ConfigError naming file, tensor and both shapes.
StoredWeights open_peft_weights(const std::filesystem::path& folder,
                                const ModelShape& shape);

/// Writes the whole folder (created if absent), adapter_config.json last: a
/// folder that has one is complete. `tensors` are keyed by the file's names.
/// Throws FailureError (io) naming the path.
void save_peft_folder(const std::filesystem::path& folder,
                      const ModelShape& shape, const std::string& base_model,
                      std::vector<TensorToStore> tensors,
                      const HfFolderOptions& options);

} // namespace troupe::models
