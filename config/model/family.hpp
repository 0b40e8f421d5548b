// A family of models as a value: the spelling and defaults of its config.json
// keys, the traits of its layers that the stack reads from ModelShape, and the
// location of each parameter in its checkpoints. A new family is a file in
// config/model/families/ and a line in families().
#pragma once

#include "config/model/hf_object.hpp"
#include "config/model/model_shape.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe {

struct Family {
  std::string name;             ///< `model_type` of config.json
  std::string causal_class;     ///< LlamaForCausalLM
  std::string classifier_class; ///< LlamaForSequenceClassification

  /// The family's names for keys of config.json that every model has; "" if it
  /// has no such key.
  struct Keys {
    std::string hidden = "hidden_size";
    std::string layers = "num_hidden_layers";
    std::string heads = "num_attention_heads";
    std::string kv_heads = "num_key_value_heads";
    std::string head_dim = "head_dim";
    std::string inner = "intermediate_size";
    std::string positions = "max_position_embeddings";
    std::string norm_eps = "rms_norm_eps";
    std::string activation = "hidden_act";
    std::string rope_theta = "rope_theta"; ///< "": learned positions
    /// The base of layers with a window, if they have one of their own.
    std::string local_rope_theta = "rope_local_base_freq";
    std::string rotated_share = "partial_rotary_factor";
  } keys;

  /// Values that transformers uses for absent keys.
  struct Defaults {
    std::int64_t vocab_size = 0;  ///< 0: none
    std::int64_t heads = 0;       ///< 0: none
    std::int64_t kv_heads = 0;    ///< 0: as many as heads
    std::int64_t head_dim = 0;    ///< 0: hidden size / heads
    std::int64_t inner_times = 0; ///< intermediate size in hidden sizes
    std::int64_t positions = 2048;
    double norm_eps = 1e-6;
    double rope_theta = 10000;
    double local_rope_theta = 0; ///< 0: one base for all layers
    double rotated_share = 1;
    bool tied = false;
    std::int32_t pad = -1; ///< -1: none
  } defaults;

  /// True if the family may rotate a part of each head.
  bool rotates_part = false;
  /// True if transformers builds the embedding with the pad token as
  /// `padding_idx`.
  bool pads_embedding = true;

  /// Traits of its layers: starting values, then overwritten from config.json.
  ModelShape traits;
  /// Names of the activation that config.json may use; the first is printed.
  std::vector<std::string> activations{"silu"};

  /// Reads, checks and prints what only this family has.
  void (*read)(const HfObject& config, ModelShape& shape) = nullptr;
  void (*print)(const ModelShape& shape, HfJson& config) = nullptr;
  /// Returns the location of a parameter in the checkpoint; null: stored under
  /// its own name.
  StoredAs (*stored)(const ModelShape& shape, const ParameterShape& parameter)
    = nullptr;
};

const std::vector<Family>& families();
/// Returns nullptr if there is no family of that name.
const Family* find_family(const std::string& name);

// Returns the family; each has a file in config/model/families/.
Family gemma_family();
Family gemma2_family();
Family gemma3_family();
Family glm_family();
Family glm4_family();
Family glm4_moe_family();
Family gpt2_family();
Family gpt_neox_family();
Family granite_family();
Family llama_family();
Family ministral_family();
Family mistral_family();
Family mixtral_family();
Family olmo2_family();
Family olmo3_family();
Family olmoe_family();
Family phi3_family();
Family qwen2_family();
Family qwen3_family();
Family qwen3_moe_family();
Family smollm3_family();

/// Marks the layers with a window: `layer_types` if config.json has them, else
/// the layers for which `windowed` returns true.
void read_layer_types(const HfObject& config, ModelShape& shape,
                      const std::function<bool(std::int64_t layer)>& windowed);
void print_layer_types(const ModelShape& shape, HfJson& config);
/// Prints `sliding_window`, null where there is none.
void print_sliding_window(const ModelShape& shape, HfJson& config);
/// Prints Gemma's `query_pre_attn_scalar`.
void print_query_scalar(const ModelShape& shape, HfJson& config);

} // namespace troupe
