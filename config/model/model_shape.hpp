// The shape of a model, without tensors: the numbers of a Hugging Face
// config.json, its parameters with their HF names, FLOPs and bytes. Layouts,
// memory checks and engines all start from it.
#pragma once

#include "config/base/dtype.hpp"
#include "config/model/expert_shape.hpp"
#include "config/model/lora.hpp"
#include "config/model/parameter_shape.hpp"
#include "config/model/rope_parameters.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// Normalization of rows: x / rms(x) * w, x / rms(x) * (1 + w), or LayerNorm
/// with a bias.
enum class NormKind : std::uint8_t { rms, rms_one_plus, layer };
enum class Activation : std::uint8_t { silu, gelu, gelu_tanh };
/// Placement of a layer's norms: of the inputs of attention and MLP, of their
/// outputs (OLMo 2), or of both (Gemma 2).
enum class NormPlacement : std::uint8_t { inputs, outputs, both };
/// RMS norms of queries and keys: of each head (Qwen3), or of all heads of a
/// token together (OLMo 2).
enum class QkNormScope : std::uint8_t { none, head, all_heads };
/// How a layer rotates queries and keys: not at all, by the model's
/// frequencies, or by those of layers with a window.
enum class LayerRope : std::uint8_t { none, global, local };
/// Positions in one layer.
struct LayerPositions {
  std::int64_t window = 0; ///< tokens that a token sees; 0: all before it
  LayerRope rope = LayerRope::global;
};

/// Constant factors of a model (Granite; muP; Gemma 2).
struct Multipliers {
  double embedding = 1;
  double attention = 0;    ///< of the scores; 0: none is stated
  double query_scalar = 0; ///< scores / sqrt(query_scalar); 0: head_dim (Gemma)
  double residual = 1;     ///< of what attention and MLP add to the stream
  double logits = 1;       ///< the logits are divided by it
  bool operator==(const Multipliers&) const = default;
};

/// Caps c of c tanh(x / c), which keep x within c (Gemma 2); 0: none.
struct SoftCaps {
  double scores = 0; ///< of attention
  double logits = 0;
  bool operator==(const SoftCaps&) const = default;
};

struct ModelShape {
  std::string family; ///< one of model_families()
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate_size = 0; ///< of a layer without experts
  std::int64_t max_positions = 0;
  RopeParameters rope;
  double norm_eps = 1e-6;
  bool tied_embeddings = false;
  bool attention_bias = false; ///< for q, k, v
  bool output_bias = false;    ///< for o
  bool mlp_bias = false;
  bool scalar_head = false; ///< ForSequenceClassification, num_labels 1
  NormKind norm = NormKind::rms;
  Activation activation = Activation::silu;
  bool gated_mlp = true; ///< act(gate) * up, else act(up)
  QkNormScope qk_norm = QkNormScope::none;
  NormPlacement norm_placement = NormPlacement::inputs;
  /// Attention and MLP read the same stream, and both are added to it
  /// (GPT-NeoX).
  bool parallel_residual = false;
  bool learned_positions = false; ///< an embedding instead of rotary positions
  bool scaled_embedding = false;  ///< multiplied by sqrt(hidden_size)
  Multipliers multipliers;
  SoftCaps caps;
  std::int64_t sliding_window = 0; ///< tokens seen, itself included; 0: all
  /// Layers with the window; empty: all.
  std::vector<bool> windowed_layers;
  std::int64_t window_from_layer = 0; ///< Qwen2's key, for printing
  /// Layers without rotary positions (NoPE); empty: none.
  std::vector<bool> unrotated_layers;
  ExpertShape experts;
  LoraShape lora;                  ///< of a trained role; not in config.json
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
  /// Returns the intermediate size of the MLP for all tokens in this layer; 0:
  /// it has experts only.
  std::int64_t mlp_width(std::int64_t layer) const {
    return experts.in_layer(layer) ? experts.shared_width : intermediate_size;
  }
  /// Returns true if a branch is changed before it is added to the stream, by a
  /// norm or a factor.
  bool changes_branches() const {
    return norms_outputs() || multipliers.residual != 1;
  }
  bool norms_inputs() const {
    return norm_placement != NormPlacement::outputs;
  }
  bool norms_outputs() const {
    return norm_placement != NormPlacement::inputs;
  }
  LayerRope rope_of(std::int64_t layer) const {
    const bool is_unrotated
      = !unrotated_layers.empty()
        && unrotated_layers[static_cast<std::size_t>(layer)];
    if (learned_positions || is_unrotated)
      return LayerRope::none;
    return rope.local_theta > 0 && window_of(layer) > 0 ? LayerRope::local
                                                        : LayerRope::global;
  }
  /// Returns the longest sequence that the model supports, in tokens.
  std::int64_t context_tokens() const {
    return troupe::context_tokens(rope, max_positions);
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

/// Returns the parameters in model order, without adapters. With `scalar_head`,
/// "score.weight" replaces "lm_head.weight"; a tied head is not listed.
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
