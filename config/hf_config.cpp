// Reading and writing Hugging Face config.json (declared in model_shape.hpp).
#include "config/error.hpp"
#include "config/model_shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t hf_size_limit = std::int64_t{1} << 24;
constexpr std::int64_t hf_layers_limit = 4096;

/// A config.json's object, with errors that name file and key.
class HfObject {
public:
  HfObject(const Json& json, std::string file, std::string prefix = "")
    : json_(json),
      file_(std::move(file)),
      prefix_(std::move(prefix)) {}

  /// The value of `key`, or null where absent or JSON null.
  const Json* find(const std::string& key) const {
    const auto at = json_.find(key);
    return at == json_.end() || at->is_null() ? nullptr : &*at;
  }
  [[noreturn]] void fail(const std::string& key, const std::string& expected,
                         const Json* got, const std::string& hint = "") const {
    throw ConfigError({.place = {file_, 0},
                       .path = prefix_ + key,
                       .expected = expected,
                       .got = got ? got->dump() : "nothing",
                       .hint = hint});
  }
  std::int64_t size(const std::string& key, std::int64_t fallback,
                    std::int64_t most = hf_size_limit) const {
    const Json* value = find(key);
    if (!value && fallback > 0)
      return fallback;
    if (!value || !value->is_number_integer() || *value < 1 || *value > most)
      fail(key, fmt::format("a whole number from 1 to {}", most), value);
    return value->get<std::int64_t>();
  }
  double positive(const std::string& key, double fallback) const {
    const Json* value = find(key);
    if (!value && fallback > 0)
      return fallback;
    if (!value || !value->is_number() || !(value->get<double>() > 0))
      fail(key, "a number > 0", value);
    return value->get<double>();
  }
  bool flag(const std::string& key, bool fallback) const {
    const Json* value = find(key);
    if (!value)
      return fallback;
    if (!value->is_boolean())
      fail(key, "true or false", value);
    return value->get<bool>();
  }
  std::string text(const std::string& key, const std::string& fallback) const {
    const Json* value = find(key);
    if (!value)
      return fallback;
    if (!value->is_string())
      fail(key, "text", value);
    return value->get<std::string>();
  }
  HfObject object(const std::string& key) const {
    const Json* value = find(key);
    if (!value->is_object())
      fail(key, "an object", value);
    return {*value, file_, prefix_ + key + "."};
  }
  std::int32_t token(const Json& value, const std::string& key) const {
    if (!value.is_number_integer() || value < 0 || value > INT32_MAX)
      fail(key, "a token id >= 0", &value);
    return value.get<std::int32_t>();
  }

private:
  const Json& json_; // NOLINT: lives in the caller's frame
  std::string file_;
  std::string prefix_;
};

void hf_read_family(const HfObject& config, ModelShape& shape) {
  shape.family = config.text("model_type", "");
  const auto& families = model_families();
  if (std::ranges::find(families, shape.family) == families.end())
    config.fail(
      "model_type",
      fmt::format("a supported family ({})", fmt::join(families, ", ")),
      config.find("model_type"));
  const Json* architectures = config.find("architectures");
  if (!architectures)
    return;
  if (!architectures->is_array() || architectures->size() != 1
      || !architectures->front().is_string())
    config.fail("architectures", "one class name", architectures);
  const auto name = architectures->front().get<std::string>();
  shape.scalar_head = name.ends_with("ForSequenceClassification");
  if (!shape.scalar_head && !name.ends_with("ForCausalLM")
      && !name.ends_with("Model"))
    config.fail("architectures",
                "a *ForCausalLM or *ForSequenceClassification class",
                architectures);
}

/// transformers writes no num_labels; id2label counts them, and 2 is the
/// default.
void hf_check_labels(const HfObject& config) {
  const Json* labels = config.find("id2label");
  const Json* number = config.find("num_labels");
  const bool one = (labels && labels->is_object() && labels->size() == 1)
                   || (!labels && number && *number == 1);
  if (!one)
    config.fail(labels ? "id2label" : "num_labels", "one label (a scalar head)",
                labels ? labels : number);
}

void hf_read_sizes(const HfObject& config, ModelShape& shape) {
  const bool llama = shape.family == "llama";
  shape.vocab_size = config.size("vocab_size", 0);
  shape.hidden_size = config.size("hidden_size", 0);
  shape.intermediate_size = config.size("intermediate_size", 0);
  shape.num_layers = config.size("num_hidden_layers", 0, hf_layers_limit);
  shape.num_heads = config.size("num_attention_heads", 0, 65536);
  shape.num_kv_heads
    = config.size("num_key_value_heads", llama ? shape.num_heads : 32, 65536);
  if (shape.num_heads % shape.num_kv_heads != 0)
    config.fail(
      "num_key_value_heads",
      fmt::format("a divisor of num_attention_heads ({})", shape.num_heads),
      config.find("num_key_value_heads"));
  if (!config.find("head_dim") && shape.hidden_size % shape.num_heads != 0)
    config.fail(
      "hidden_size",
      fmt::format("a multiple of num_attention_heads ({})", shape.num_heads),
      config.find("hidden_size"));
  shape.head_dim
    = config.size("head_dim", shape.hidden_size / shape.num_heads, 65536);
  if (shape.head_dim % 2 != 0)
    config.fail("head_dim", "an even number (rotary pairs)",
                config.find("head_dim"));
  shape.max_positions = config.size(
    "max_position_embeddings", llama ? 2048 : 32768, std::int64_t{1} << 31);
  shape.norm_eps = config.positive("rms_norm_eps", 1e-6);
  shape.initializer_range = config.positive("initializer_range", 0.02);
}

void hf_read_flags(const HfObject& config, ModelShape& shape) {
  shape.tied_embeddings = config.flag("tie_word_embeddings", false);
  // Qwen2's projections have biases without a key that says so.
  shape.attention_bias
    = shape.family == "qwen2" || config.flag("attention_bias", false);
  shape.mlp_bias = shape.family == "llama" && config.flag("mlp_bias", false);
  if (config.text("hidden_act", "silu") != "silu")
    config.fail("hidden_act", "\"silu\"", config.find("hidden_act"));
  if (shape.family == "qwen2" && config.flag("use_sliding_window", false))
    config.fail("use_sliding_window", "false (the only kind this version runs)",
                config.find("use_sliding_window"));
  for (const char* key : {"attention_dropout", "embd_pdrop"})
    if (const Json* value = config.find(key); value && *value != 0.0)
      config.fail(key, "0 (no dropout)", value);
}

void hf_read_rope_scaling(const HfObject& rope, ModelShape& shape) {
  auto type = rope.text("rope_type", rope.text("type", "default"));
  const char* key = rope.find("rope_type") ? "rope_type" : "type";
  if (const Json* part = rope.find("partial_rotary_factor");
      part && *part != 1.0)
    rope.fail("partial_rotary_factor", "1 (whole heads rotate)", part);
  if (type == "default")
    return;
  if (type != "linear" && type != "llama3")
    rope.fail(key, "\"default\", \"linear\" or \"llama3\"", rope.find(key));
  shape.rope_scaling = type;
  shape.rope_factor = rope.positive("factor", 0);
  if (type == "linear")
    return;
  shape.rope_low_freq_factor = rope.positive("low_freq_factor", 0);
  shape.rope_high_freq_factor = rope.positive("high_freq_factor", 0);
  shape.rope_original_max_positions
    = rope.size("original_max_position_embeddings", 0, std::int64_t{1} << 31);
  if (shape.rope_high_freq_factor <= shape.rope_low_freq_factor)
    rope.fail("high_freq_factor", "a number > low_freq_factor",
              rope.find("high_freq_factor"));
}

void hf_read_rope(const HfObject& config, ModelShape& shape) {
  shape.rope_theta = config.positive("rope_theta", 10000.0);
  if (config.find("rope_parameters")) {
    const auto rope = config.object("rope_parameters");
    shape.rope_theta = rope.positive("rope_theta", shape.rope_theta);
    hf_read_rope_scaling(rope, shape);
  } else if (config.find("rope_scaling")) {
    hf_read_rope_scaling(config.object("rope_scaling"), shape);
  }
}

void hf_read_dtype(const HfObject& config, ModelShape& shape) {
  const char* key = config.find("dtype") ? "dtype" : "torch_dtype";
  const auto name = config.text(key, "float32");
  if (name == "float32")
    shape.stored_dtype = DType::f32;
  else if (name == "bfloat16")
    shape.stored_dtype = DType::bf16;
  else if (name == "float16")
    shape.stored_dtype = DType::f16;
  else
    config.fail(key, "\"float32\", \"bfloat16\" or \"float16\"",
                config.find(key));
}

void hf_read_tokens(const HfObject& config, ModelShape& shape) {
  if (const Json* bos = config.find("bos_token_id"))
    shape.bos = config.token(*bos, "bos_token_id");
  if (const Json* pad = config.find("pad_token_id"); pad && *pad != -1)
    shape.pad = config.token(*pad, "pad_token_id");
  const Json* eos = config.find("eos_token_id");
  if (eos && eos->is_array())
    for (const auto& id : *eos)
      shape.eos.push_back(config.token(id, "eos_token_id"));
  else if (eos)
    shape.eos.push_back(config.token(*eos, "eos_token_id"));
}

const char* hf_dtype_name(DType type) {
  switch (type) {
  case DType::bf16:
    return "bfloat16";
  case DType::f16:
    return "float16";
  default:
    return "float32";
  }
}

Json hf_rope_scaling(const ModelShape& shape) {
  if (shape.rope_scaling.empty())
    return nullptr;
  Json rope
    = {{"rope_type", shape.rope_scaling}, {"factor", shape.rope_factor}};
  if (shape.rope_scaling == "llama3") {
    rope["low_freq_factor"] = shape.rope_low_freq_factor;
    rope["high_freq_factor"] = shape.rope_high_freq_factor;
    rope["original_max_position_embeddings"]
      = shape.rope_original_max_positions;
  }
  return rope;
}

Json hf_token(std::int32_t id) {
  return id < 0 ? Json(nullptr) : Json(id);
}

} // namespace

ModelShape parse_model_shape(const std::string& json,
                             const std::string& file_name) {
  Json tree;
  try {
    tree = Json::parse(json);
  } catch (const Json::exception& error) {
    throw ConfigError({file_name, 0},
                      fmt::format("expected JSON, got: {}", error.what()));
  }
  if (!tree.is_object())
    throw ConfigError({file_name, 0}, "expected a JSON object, got another "
                                      "value");
  const HfObject config(tree, file_name);
  ModelShape shape;
  hf_read_family(config, shape);
  if (shape.scalar_head)
    hf_check_labels(config);
  hf_read_sizes(config, shape);
  hf_read_flags(config, shape);
  hf_read_rope(config, shape);
  hf_read_dtype(config, shape);
  hf_read_tokens(config, shape);
  return shape;
}

ModelShape read_model_shape(const std::filesystem::path& config_json) {
  std::error_code error;
  auto file = config_json;
  if (std::filesystem::is_directory(file, error))
    file /= "config.json";
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw ConfigError({file.string(), 0},
                      "expected a model's config.json, got no readable file; "
                      "try a folder in Hugging Face format");
  std::ostringstream text;
  text << stream.rdbuf();
  return parse_model_shape(text.str(), file.string());
}

std::string print_hf_config(const ModelShape& shape) {
  const bool llama = shape.family == "llama";
  const std::string family = llama ? "Llama" : "Qwen2";
  Json json;
  json["architectures"] = {
    family + (shape.scalar_head ? "ForSequenceClassification" : "ForCausalLM")};
  json["model_type"] = shape.family;
  json["vocab_size"] = shape.vocab_size;
  json["hidden_size"] = shape.hidden_size;
  json["intermediate_size"] = shape.intermediate_size;
  json["num_hidden_layers"] = shape.num_layers;
  json["num_attention_heads"] = shape.num_heads;
  json["num_key_value_heads"] = shape.num_kv_heads;
  // Qwen2's own configs do not name it
  if (llama || shape.head_dim * shape.num_heads != shape.hidden_size)
    json["head_dim"] = shape.head_dim;
  json["max_position_embeddings"] = shape.max_positions;
  json["hidden_act"] = "silu";
  json["rms_norm_eps"] = shape.norm_eps;
  json["initializer_range"] = shape.initializer_range;
  if (llama) {
    json["attention_bias"] = shape.attention_bias;
    json["mlp_bias"] = shape.mlp_bias;
  } else {
    json["use_sliding_window"] = false;
  }
  json["attention_dropout"] = 0.0;
  json["tie_word_embeddings"] = shape.tied_embeddings;
  // The published spelling: transformers 4 and 5 both read it.
  json["rope_theta"] = shape.rope_theta;
  json["rope_scaling"] = hf_rope_scaling(shape);
  json["torch_dtype"] = hf_dtype_name(shape.stored_dtype);
  json["bos_token_id"] = hf_token(shape.bos);
  json["eos_token_id"] = shape.eos.empty()       ? Json(nullptr)
                         : shape.eos.size() == 1 ? Json(shape.eos.front())
                                                 : Json(shape.eos);
  json["pad_token_id"] = hf_token(shape.pad);
  if (shape.scalar_head) {
    json["id2label"] = {{"0", "LABEL_0"}};
    json["label2id"] = {{"LABEL_0", 0}};
  }
  json["use_cache"] = true;
  return json.dump(2) + "\n";
}

} // namespace troupe
