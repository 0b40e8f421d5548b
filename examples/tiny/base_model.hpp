// An untrained LLaMA as a Hugging Face folder: config.json,
// generation_config.json and model.safetensors with random weights.
#pragma once

#include "examples/tiny/seeded.hpp"

#include <cstdint>
#include <filesystem>

namespace tiny {

struct LlamaShape {
  std::int64_t vocab = 512;
  std::int64_t hidden = 96;
  std::int64_t layers = 2;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t intermediate = 256;
  std::int64_t max_positions = 128;
};

/// Writes the three files. Matrices are normal with deviation 0.08, norms one.
void write_base_model(const LlamaShape& shape, std::int64_t eos_id,
                      std::int64_t pad_id, Seeded& random,
                      const std::filesystem::path& folder);

} // namespace tiny
