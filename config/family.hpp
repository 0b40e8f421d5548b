// A family of models as a value: how its config.json spells and defaults what
// all families have, the traits of its layers that the stack reads from
// ModelShape, and where its checkpoints keep each parameter. A new family is a
// file in config/families/ and a line in families().
#pragma once

#include "config/hf_object.hpp"
#include "config/model_shape.hpp"

#include <string>
#include <vector>

namespace troupe {

struct Family {
  std::string name;             ///< `model_type` of config.json
  std::string causal_class;     ///< LlamaForCausalLM
  std::string classifier_class; ///< LlamaForSequenceClassification

  /// How config.json calls what every model has. "" where it has no such key.
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
    bool rope = true;
  } keys;

  /// What transformers takes where a key is absent.
  struct Defaults {
    std::int64_t kv_heads = 0;    ///< 0: as many as heads
    std::int64_t head_dim = 0;    ///< 0: hidden size / heads
    std::int64_t inner_times = 0; ///< intermediate size in hidden sizes
    std::int64_t positions = 2048;
    double norm_eps = 1e-6;
    double rope_theta = 10000;
    bool tied = false;
    std::int32_t pad = -1; ///< -1: none
  } defaults;

  /// True where transformers builds the embedding with the pad token as
  /// `padding_idx`.
  bool pads_embedding = true;

  /// What its layers are like; read from here, then from config.json.
  ModelShape traits;
  /// Names of the activation that config.json may give; the first is printed.
  std::vector<std::string> activations{"silu"};

  /// Reads, checks and prints what only this family has.
  void (*read)(const HfObject& config, ModelShape& shape) = nullptr;
  void (*print)(const ModelShape& shape, HfJson& config) = nullptr;
  /// Where the checkpoint keeps a parameter; null: under its own name.
  StoredAs (*stored)(const ModelShape& shape, const ParameterShape& parameter)
    = nullptr;
};

const std::vector<Family>& families();
/// nullptr if there is none of that name.
const Family* find_family(const std::string& name);

// One function a file of config/families/.
Family gemma_family();
Family gemma2_family();
Family gpt2_family();
Family llama_family();
Family mistral_family();
Family mixtral_family();
Family qwen2_family();
Family qwen3_family();

/// Marks which layers see a window: `layer_types` where config.json has them,
/// else layers for which `windowed` says so.
void read_layer_types(const HfObject& config, ModelShape& shape,
                      bool (*windowed)(std::int64_t layer));
void print_layer_types(const ModelShape& shape, HfJson& config);

} // namespace troupe
