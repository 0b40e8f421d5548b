// A model folder of a few kilobytes with a tokenizer of words, generated on the
// spot: enough for everything that is checked before a run starts.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/hf/hf_folder.hpp"

#include "tests/support/runtime/temp_folder.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::test {

inline ModelShape tiny_shape() {
  ModelShape shape;
  shape.family = "llama";
  shape.vocab_size = 8;
  shape.hidden_size = 8;
  shape.num_layers = 1;
  shape.num_heads = 2;
  shape.num_kv_heads = 1;
  shape.head_dim = 4;
  shape.intermediate_size = 16;
  shape.max_positions = 64;
  shape.eos = {0};
  return shape;
}

/// Words a to f are tokens 2 to 7; `third` replaces the word of token 4.
inline void write_tiny_tokenizer(const std::filesystem::path& folder,
                                 const std::string& third = "c") {
  write_text(folder / "tokenizer.json", R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 0, "content": "<eos>", "single_word": false,
      "lstrip": false, "rstrip": false, "normalized": false,
      "special": true}],
    "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": null, "decoder": null,
    "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {
      "<eos>": 0, "<unk>": 1, "a": 2, "b": 3, ")"
                                          + third + R"(": 4, "d": 5,
      "e": 6, "f": 7}}})");
  write_text(folder / "tokenizer_config.json",
             R"({"eos_token": "<eos>", "unk_token": "<unk>"})");
}

inline void write_tiny_model(const std::filesystem::path& folder,
                             const ModelShape& shape = tiny_shape()) {
  std::vector<std::vector<std::byte>> data;
  std::vector<models::TensorToStore> tensors;
  for (const auto& parameter : parameters(shape)) {
    data.emplace_back(static_cast<std::size_t>(parameter.num_elements()) * 4);
    tensors.push_back(
      {.name = parameter.name,
       .shape = parameter.vector
                  ? std::vector<std::int64_t>{parameter.rows}
                  : std::vector<std::int64_t>{parameter.rows, parameter.cols},
       .type = DType::f32,
       .stored = DType::f32,
       .data = {}});
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    tensors[i].data = data[i];
  models::save_hf_folder(folder, shape, tensors, {});
  write_tiny_tokenizer(folder);
}

} // namespace troupe::test
