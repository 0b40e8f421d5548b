// What a model is, without a tensor: the numbers of a Hugging Face config.json,
// its parameters with their HF names, FLOPs and bytes. Layouts, memory checks
// and engines all start from here.
#pragma once

#include "config/dtype.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

struct ParameterShape {
  std::string name; ///< as in HF checkpoints
  std::int64_t rows = 0;
  std::int64_t cols = 1; ///< 1 for vectors
  bool vector = false;
  std::int32_t layer = 0;     ///< -1 embedding, 0..L-1, L: final norm and head
  std::int8_t split_dim = -1; ///< tensor parallel: -1 whole, 0 rows, 1 columns
  bool decay = true;          ///< AdamW decays it: two or more dimensions
  /// Rows (or columns) that a split keeps together: the dim of a head.
  std::int64_t split_unit = 1;
  bool operator==(const ParameterShape&) const = default;
  std::int64_t num_elements() const {
    return rows * cols;
  }
};

struct ModelShape {
  std::string family; ///< "llama" | "qwen2"
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t max_positions = 0;
  double rope_theta = 10000.0;
  double norm_eps = 1e-6;
  bool tied_embeddings = false;
  bool attention_bias = false; ///< llama: on q, k, v, o; qwen2: on q, k, v
  bool mlp_bias = false;       ///< llama only
  bool scalar_head = false;    ///< ForSequenceClassification, num_labels 1
  std::string rope_scaling;    ///< "" | "linear" | "llama3"
  double rope_factor = 1.0;    ///< linear, llama3
  double rope_low_freq_factor = 1.0;            ///< llama3
  double rope_high_freq_factor = 4.0;           ///< llama3
  std::int64_t rope_original_max_positions = 0; ///< llama3
  double initializer_range = 0.02;              ///< of new heads
  DType stored_dtype = DType::f32;
  std::int32_t bos = -1;         ///< -1: none
  std::vector<std::int32_t> eos; ///< any of them ends a sequence
  std::int32_t pad = -1;         ///< -1: none
  bool operator==(const ModelShape&) const = default;
};

/// Families that `read_model_shape` accepts.
const std::vector<std::string>& model_families();

/// Reads a config.json, or the one inside a folder. Understands transformers
/// 5 (`rope_parameters`, `dtype`) and published (`rope_theta`, `rope_scaling`,
/// `torch_dtype`) spelling. Throws ConfigError naming file and key.
ModelShape read_model_shape(const std::filesystem::path& config_json);
/// The same from text; `file_name` is for messages.
ModelShape parse_model_shape(const std::string& json,
                             const std::string& file_name);
/// A config.json that transformers (4 and 5) loads as *ForCausalLM, or
/// *ForSequenceClassification with num_labels 1.
std::string print_hf_config(const ModelShape& shape);

/// Parameters in model order with HF names. With `scalar_head`
/// "score.weight" stands in place of "lm_head.weight"; a tied head is not
/// listed.
std::vector<ParameterShape> parameters(const ModelShape& shape);
std::uint64_t num_parameters(const ModelShape& shape);
/// Bytes of all parameters stored as `type`.
std::uint64_t weight_bytes(const ModelShape& shape, DType type);

/// Floating-point operations of one forward pass over packed sequences: 2 a
/// multiply-add; `squared_lengths` is the sum of L^2 over the sequences, of
/// which causal attention computes half. Backward is twice this.
double forward_flops(const ModelShape& shape, double tokens,
                     double squared_lengths);

} // namespace troupe
