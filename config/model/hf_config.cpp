// Reading and writing Hugging Face config.json (declared in model_shape.hpp).
#include "config/base/error.hpp"
#include "config/model/family.hpp"
#include "config/model/hf_rope.hpp"
#include "config/model/missing_trait.hpp"
#include "config/model/model_shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace troupe {

namespace {

constexpr std::int64_t hf_layers_limit = 4096;

/// Returns the text model inside the configuration of a model of images and
/// text (Gemma 3, Mistral Small 3.1), with what it shares with the whole.
HfJson hf_text_part(HfJson tree) {
  const auto part = tree.find("text_config");
  if (part == tree.end() || !part->is_object() || !part->contains("model_type"))
    return tree;
  HfJson text = *part;
  for (const char* key :
       {"dtype", "torch_dtype", "bos_token_id", "eos_token_id", "pad_token_id",
        "tie_word_embeddings", "initializer_range"})
    if (!text.contains(key) && tree.contains(key))
      text[key] = tree[key];
  text.erase("architectures"); // those of the whole
  return text;
}

const Family& hf_read_family(const HfObject& config) {
  const auto name = config.text("model_type", "");
  const Family* family = find_family(name);
  if (family == nullptr)
    config.fail(
      "model_type",
      fmt::format("a supported family ({})", fmt::join(model_families(), ", ")),
      missing_trait(name));
  return *family;
}

void hf_read_class(const HfObject& config, const Family& family,
                   ModelShape& shape) {
  const HfJson* architectures = config.find("architectures");
  if (!architectures)
    return;
  if (!architectures->is_array() || architectures->size() != 1
      || !architectures->front().is_string())
    config.fail("architectures", "one class name");
  const auto name = architectures->front().get<std::string>();
  shape.scalar_head = name == family.classifier_class;
  if (!shape.scalar_head && name != family.causal_class
      && !name.ends_with("Model"))
    config.fail("architectures", fmt::format("{} or {}", family.causal_class,
                                             family.classifier_class));
}

/// transformers writes no num_labels: id2label counts them, and the default is
/// 2
void hf_check_labels(const HfObject& config) {
  const HfJson* labels = config.find("id2label");
  const HfJson* number = config.find("num_labels");
  const bool one = (labels && labels->is_object() && labels->size() == 1)
                   || (!labels && number && *number == 1);
  if (!one)
    config.fail(labels ? "id2label" : "num_labels",
                "one label (a scalar head)");
}

void hf_read_heads(const HfObject& config, const Family& family,
                   ModelShape& shape) {
  const Family::Keys& keys = family.keys;
  const Family::Defaults& absent = family.defaults;
  shape.num_heads = config.size(keys.heads, absent.heads, 65536);
  shape.num_kv_heads = shape.num_heads;
  // null means as many as heads, an absent key means transformers' default
  if (!keys.kv_heads.empty() && !config.has_null(keys.kv_heads))
    shape.num_kv_heads = config.size(
      keys.kv_heads, absent.kv_heads > 0 ? absent.kv_heads : shape.num_heads,
      65536);
  if (shape.num_heads % shape.num_kv_heads != 0)
    config.fail(keys.kv_heads, fmt::format("a divisor of {} ({})", keys.heads,
                                           shape.num_heads));
  const bool given = !keys.head_dim.empty() && config.find(keys.head_dim);
  if (!given && absent.head_dim == 0
      && shape.hidden_size % shape.num_heads != 0)
    config.fail(keys.hidden, fmt::format("a multiple of {} ({})", keys.heads,
                                         shape.num_heads));
  shape.head_dim = absent.head_dim > 0 ? absent.head_dim
                                       : shape.hidden_size / shape.num_heads;
  if (given)
    shape.head_dim = config.size(keys.head_dim, 0, 65536);
  if (!keys.rope_theta.empty() && shape.head_dim % 2 != 0)
    config.fail(keys.head_dim, "an even number (rotary pairs)");
}

void hf_read_sizes(const HfObject& config, const Family& family,
                   ModelShape& shape) {
  const Family::Keys& keys = family.keys;
  const Family::Defaults& absent = family.defaults;
  shape.vocab_size = config.size("vocab_size", absent.vocab_size);
  shape.hidden_size = config.size(keys.hidden, 0);
  shape.intermediate_size
    = config.size(keys.inner, absent.inner_times * shape.hidden_size);
  shape.num_layers = config.size(keys.layers, 0, hf_layers_limit);
  hf_read_heads(config, family, shape);
  shape.max_positions
    = config.size(keys.positions, absent.positions, std::int64_t{1} << 31);
  shape.norm_eps = config.positive(keys.norm_eps, absent.norm_eps);
  shape.initializer_range = config.positive("initializer_range", 0.02);
  shape.tied_embeddings = config.flag("tie_word_embeddings", absent.tied);
}

void hf_check_activation(const HfObject& config, const Family& family) {
  const auto& names = family.activations;
  const auto name = config.text(family.keys.activation, names.front());
  if (std::ranges::find(names, name) == names.end())
    config.fail(family.keys.activation,
                fmt::format("\"{}\"", fmt::join(names, "\" or \"")));
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
    config.fail(key, "\"float32\", \"bfloat16\" or \"float16\"");
}

std::vector<std::int32_t> hf_eos(const HfObject& config) {
  std::vector<std::int32_t> ids;
  const HfJson* eos = config.find("eos_token_id");
  if (eos && eos->is_array())
    for (const auto& id : *eos)
      ids.push_back(config.token(id, "eos_token_id"));
  else if (eos)
    ids.push_back(config.token(*eos, "eos_token_id"));
  return ids;
}

/// A pad token of -1, which some configs use for none, refers to the last row
/// of the embedding in `torch.nn.Embedding`.
void hf_read_pad(const HfObject& config, const Family& family,
                 ModelShape& shape) {
  const HfJson* pad = config.find("pad_token_id");
  const bool is_minus_one = pad != nullptr && *pad == -1;
  if (pad != nullptr && !is_minus_one)
    shape.pad = config.token(*pad, "pad_token_id");
  else if (!config.has_null("pad_token_id") && !is_minus_one)
    shape.pad = family.defaults.pad;
  if (family.pads_embedding)
    shape.padding_row = is_minus_one
                          ? static_cast<std::int32_t>(shape.vocab_size) - 1
                          : shape.pad;
}

void hf_read_tokens(const HfObject& config, const Family& family,
                    ModelShape& shape) {
  if (const HfJson* bos = config.find("bos_token_id"))
    shape.bos = config.token(*bos, "bos_token_id");
  hf_read_pad(config, family, shape);
  shape.eos = hf_eos(config);
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

HfJson hf_token(std::int32_t id) {
  return id < 0 ? HfJson(nullptr) : HfJson(id);
}

HfJson hf_pad(const ModelShape& shape) {
  return shape.pad < 0 && shape.padding_row >= 0 ? HfJson(-1)
                                                 : hf_token(shape.pad);
}

std::string hf_text(std::istream& stream) {
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// Returns `eos_token_id` of a file that may be missing.
std::vector<std::int32_t> hf_eos_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    return {};
  const HfJson tree = parse_hf_object(hf_text(stream), file.string());
  return hf_eos({tree, file.string()});
}

constexpr const char* generation_config_file = "generation_config.json";

} // namespace

ModelShape parse_model_shape(const std::string& json,
                             const std::string& file_name) {
  const HfJson tree = hf_text_part(parse_hf_object(json, file_name));
  const HfObject config(tree, file_name);
  const Family& family = hf_read_family(config);
  ModelShape shape = family.traits;
  shape.family = family.name;
  hf_read_class(config, family, shape);
  if (shape.scalar_head)
    hf_check_labels(config);
  hf_read_sizes(config, family, shape);
  hf_check_activation(config, family);
  if (family.read != nullptr)
    family.read(config, shape);
  read_rope(config, family, shape);
  hf_read_dtype(config, shape);
  hf_read_tokens(config, family, shape);
  return shape;
}

ModelShape read_model_shape(const std::filesystem::path& config_json) {
  std::error_code error;
  auto file = config_json;
  if (std::filesystem::is_directory(file, error))
    file /= "config.json";
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw ConfigError({.place = {file.string(), 0},
                       .path = "",
                       .expected = "a model's config.json",
                       .got = "no readable file",
                       .hint = hint_of_model_folder});
  ModelShape shape = parse_model_shape(hf_text(stream), file.string());
  auto ends = hf_eos_of(file.parent_path() / generation_config_file);
  if (ends != shape.eos)
    shape.generation_eos = std::move(ends);
  return shape;
}

std::vector<std::int32_t> read_end_tokens(const std::filesystem::path& folder) {
  auto ends = hf_eos_of(folder / generation_config_file);
  return ends.empty() ? hf_eos_of(folder / "config.json") : ends;
}

std::string print_hf_config(const ModelShape& shape) {
  const Family* family = find_family(shape.family);
  TROUPE_CHECK(family != nullptr, "no family " + shape.family);
  const Family::Keys& keys = family->keys;
  HfJson json;
  json["architectures"]
    = {shape.scalar_head ? family->classifier_class : family->causal_class};
  json["model_type"] = shape.family;
  json["vocab_size"] = shape.vocab_size;
  json[keys.hidden] = shape.hidden_size;
  json[keys.inner] = shape.intermediate_size;
  json[keys.layers] = shape.num_layers;
  json[keys.heads] = shape.num_heads;
  if (!keys.kv_heads.empty())
    json[keys.kv_heads] = shape.num_kv_heads;
  if (!keys.head_dim.empty())
    json[keys.head_dim] = shape.head_dim;
  json[keys.positions] = shape.max_positions;
  json[keys.activation] = family->activations.front();
  json[keys.norm_eps] = shape.norm_eps;
  json["initializer_range"] = shape.initializer_range;
  if (family->print != nullptr)
    family->print(shape, json);
  json["tie_word_embeddings"] = shape.tied_embeddings;
  if (!keys.rope_theta.empty()) {
    json["attention_dropout"] = 0.0;
    print_rope(shape, json);
  }
  json["torch_dtype"] = hf_dtype_name(shape.stored_dtype);
  json["bos_token_id"] = hf_token(shape.bos);
  json["eos_token_id"] = shape.eos.empty()       ? HfJson(nullptr)
                         : shape.eos.size() == 1 ? HfJson(shape.eos.front())
                                                 : HfJson(shape.eos);
  json["pad_token_id"] = hf_pad(shape);
  if (shape.scalar_head) {
    json["num_labels"] = 1;
    json["id2label"] = {{"0", "LABEL_0"}};
    json["label2id"] = {{"LABEL_0", 0}};
  }
  json["use_cache"] = true;
  return json.dump(2) + "\n";
}

} // namespace troupe
