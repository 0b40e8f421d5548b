// The shape of a model, without tensors: the numbers of a Hugging Face
// config.json, its parameters with their HF names, FLOPs and bytes. Layouts,
// memory checks and engines all start from it.
#pragma once

#include "config/base/dtype.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// Location of a parameter in a checkpoint.
struct StoredAs {
  std::string name;           ///< tensor's name; "": the parameter's
  bool transposed = false;    ///< [cols, rows] in the file
  std::int64_t first_row = 0; ///< offset in a tensor with several parameters
  std::int64_t rows = 0;      ///< that tensor's rows in the file; 0: same
  bool operator==(const StoredAs&) const = default;
};

struct ParameterShape {
  std::string name; ///< LLaMA's HF name in every family
  std::int64_t rows = 0;
  std::int64_t cols = 1; ///< 1 for vectors
  bool vector = false;
  std::int32_t layer = 0;     ///< -1: embedding; [0, L); L: final norm and head
  std::int8_t split_dim = -1; ///< tensor parallel: -1 whole, 0 rows, 1 columns
  bool decay = true;          ///< AdamW weight decay: two or more dimensions
  /// Rows (or columns) that a split keeps together: the head dimension.
  std::int64_t split_unit = 1;
  StoredAs stored; ///< location in the family's checkpoints
  bool operator==(const ParameterShape&) const = default;
  std::int64_t num_elements() const {
    return rows * cols;
  }
  /// Returns the name of its tensor in a checkpoint.
  const std::string& file_name() const {
    return stored.name.empty() ? name : stored.name;
  }
};

/// Normalization of rows: x / rms(x) * w, x / rms(x) * (1 + w), or LayerNorm
/// with a bias.
enum class NormKind : std::uint8_t { rms, rms_one_plus, layer };
enum class Activation : std::uint8_t { silu, gelu_tanh };

struct ModelShape {
  std::string family; ///< one of model_families()
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
  bool attention_bias = false; ///< for q, k, v
  bool output_bias = false;    ///< for o
  bool mlp_bias = false;
  bool scalar_head = false; ///< ForSequenceClassification, num_labels 1
  std::string rope_scaling; ///< "" | "linear" | "llama3"
  double rope_factor = 1.0; ///< linear, llama3
  double rope_low_freq_factor = 1.0;            ///< llama3
  double rope_high_freq_factor = 4.0;           ///< llama3
  std::int64_t rope_original_max_positions = 0; ///< llama3
  NormKind norm = NormKind::rms;
  Activation activation = Activation::silu;
  bool gated_mlp = true;           ///< act(gate) * up, else act(up)
  bool query_key_norm = false;     ///< RMS norms of each head's q and k
  bool post_norms = false;         ///< norms also after attention and MLP
  bool learned_positions = false;  ///< an embedding instead of rotary positions
  bool scaled_embedding = false;   ///< multiplied by sqrt(hidden_size)
  double query_scalar = 0;         ///< scores / sqrt(query_scalar); 0: head_dim
  double attention_cap = 0;        ///< cap tanh(score / cap); 0: none
  double logit_cap = 0;            ///< the same for logits
  std::int64_t sliding_window = 0; ///< tokens seen, itself included; 0: all
  /// Layers with the window; empty: all.
  std::vector<bool> windowed_layers;
  std::int64_t window_from_layer = 0; ///< Qwen2's key, for printing
  std::int64_t num_experts = 0;       ///< 0: one MLP for all tokens
  std::int64_t experts_per_token = 0;
  double initializer_range = 0.02; ///< for new heads
  DType stored_dtype = DType::f32;
  std::int32_t bos = -1;         ///< -1: none
  std::vector<std::int32_t> eos; ///< from config.json
  /// From generation_config.json, if it names others.
  std::vector<std::int32_t> generation_eos;
  std::int32_t pad = -1; ///< -1: none
  /// Row of the embedding that look-ups do not train: the pad token's, if
  /// transformers builds the embedding with `padding_idx`. -1: none.
  std::int32_t padding_row = -1;
  bool operator==(const ModelShape&) const = default;

  /// Returns the number of tokens that a token of this layer sees; 0: all
  /// before it.
  std::int64_t window_of(std::int64_t layer) const {
    const bool has_window = windowed_layers.empty()
                            || windowed_layers[static_cast<std::size_t>(layer)];
    return has_window ? sliding_window : 0;
  }
  /// Returns the longest sequence that the model supports, in tokens: its
  /// positions, times the factor of linear rope scaling. The positions of
  /// `llama3` are those after scaling, as in published configs.
  std::int64_t context_tokens() const {
    if (rope_scaling != "linear")
      return max_positions;
    return static_cast<std::int64_t>(rope_factor
                                     * static_cast<double>(max_positions));
  }
  /// Returns the tokens that end a response.
  const std::vector<std::int32_t>& ends() const {
    return generation_eos.empty() ? eos : generation_eos;
  }
};

/// Returns the names of the families that `read_model_shape` accepts.
const std::vector<std::string>& model_families();

/// Reads a config.json, or the one inside a folder, and the end tokens of the
/// generation_config.json beside it. Understands the spelling of transformers 5
/// (`rope_parameters`, `dtype`) and the published one (`rope_theta`,
/// `rope_scaling`, `torch_dtype`). Throws ConfigError naming file and key.
ModelShape read_model_shape(const std::filesystem::path& config_json);
/// Returns `eos_token_id` of a folder's generation_config.json, which
/// transformers obeys, or else of its config.json; none if neither file names
/// any.
std::vector<std::int32_t> read_end_tokens(const std::filesystem::path& folder);
/// Parses the same from text; `file_name` is for messages.
ModelShape parse_model_shape(const std::string& json,
                             const std::string& file_name);
/// Returns a config.json that transformers (4 and 5) loads as *ForCausalLM, or
/// as *ForSequenceClassification with num_labels 1.
std::string print_hf_config(const ModelShape& shape);

/// Returns the parameters in model order. With `scalar_head`, "score.weight"
/// replaces "lm_head.weight"; a tied head is not listed.
std::vector<ParameterShape> parameters(const ModelShape& shape);
std::uint64_t num_parameters(const ModelShape& shape);
/// Returns the bytes of all parameters stored as `type`.
std::uint64_t weight_bytes(const ModelShape& shape, DType type);

/// Returns the floating-point operations of one forward pass over packed
/// sequences: 2 per multiply-add; `squared_lengths` is the sum of L^2 over the
/// sequences, of which causal attention computes half. Backward costs twice
/// this.
double forward_flops(const ModelShape& shape, double tokens,
                     double squared_lengths);

} // namespace troupe
