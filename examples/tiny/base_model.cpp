#include "examples/tiny/base_model.hpp"

#include "examples/tiny/json_file.hpp"

#include <nlohmann/json.hpp>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

namespace tiny {

namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little,
              "safetensors stores little-endian numbers");

/// One tensor of the file; without columns, the weight of a norm, all ones.
struct Parameter {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::int64_t count() const {
    return rows * (columns == 0 ? 1 : columns);
  }
};

std::vector<Parameter> parameters(const LlamaShape& shape) {
  const std::int64_t kv_width = shape.hidden / shape.heads * shape.kv_heads;
  std::vector<Parameter> all{
    {"model.embed_tokens.weight", shape.vocab, shape.hidden}};
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    all.insert(
      all.end(),
      {{prefix + "input_layernorm.weight", shape.hidden, 0},
       {prefix + "self_attn.q_proj.weight", shape.hidden, shape.hidden},
       {prefix + "self_attn.k_proj.weight", kv_width, shape.hidden},
       {prefix + "self_attn.v_proj.weight", kv_width, shape.hidden},
       {prefix + "self_attn.o_proj.weight", shape.hidden, shape.hidden},
       {prefix + "post_attention_layernorm.weight", shape.hidden, 0},
       {prefix + "mlp.gate_proj.weight", shape.intermediate, shape.hidden},
       {prefix + "mlp.up_proj.weight", shape.intermediate, shape.hidden},
       {prefix + "mlp.down_proj.weight", shape.hidden, shape.intermediate}});
  }
  all.push_back({"model.norm.weight", shape.hidden, 0});
  all.push_back({"lm_head.weight", shape.vocab, shape.hidden});
  return all;
}

/// Returns the bytes of one parameter, row-major fp32.
std::string draw(const Parameter& parameter, Seeded& random) {
  constexpr double deviation = 0.08; // about 1 / sqrt(hidden): trains at once
  std::vector<float> values(static_cast<std::size_t>(parameter.count()), 1.0F);
  if (parameter.columns > 0)
    for (float& value : values)
      value = static_cast<float>(deviation * random.normal());
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Returns the file: length of the header in 8 bytes, the header, the data.
std::string safetensors(const LlamaShape& shape, Seeded& random) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const Parameter& parameter : parameters(shape)) {
    const std::size_t begin = data.size();
    data += draw(parameter, random);
    Json dims = Json::array({parameter.rows});
    if (parameter.columns > 0)
      dims.push_back(parameter.columns);
    header[parameter.name] = {{"dtype", "F32"},
                              {"shape", std::move(dims)},
                              {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' '); // tensors start aligned
  std::string length(sizeof(std::uint64_t), '\0');
  const std::uint64_t size_bytes = text.size();
  std::memcpy(length.data(), &size_bytes, sizeof size_bytes);
  return length + text + data;
}

} // namespace

void write_base_model(const LlamaShape& shape, std::int64_t eos_id,
                      std::int64_t pad_id, Seeded& random,
                      const std::filesystem::path& folder) {
  write_json(folder / "config.json",
             {{"architectures", {"LlamaForCausalLM"}},
              {"model_type", "llama"},
              {"vocab_size", shape.vocab},
              {"hidden_size", shape.hidden},
              {"intermediate_size", shape.intermediate},
              {"num_hidden_layers", shape.layers},
              {"num_attention_heads", shape.heads},
              {"num_key_value_heads", shape.kv_heads},
              {"head_dim", shape.hidden / shape.heads},
              {"hidden_act", "silu"},
              {"max_position_embeddings", shape.max_positions},
              {"rms_norm_eps", 1e-5},
              {"rope_theta", 10000.0},
              {"rope_scaling", nullptr},
              {"attention_bias", false},
              {"attention_dropout", 0.0},
              {"mlp_bias", false},
              {"tie_word_embeddings", false},
              {"initializer_range", 0.02},
              {"bos_token_id", nullptr},
              {"eos_token_id", eos_id},
              {"pad_token_id", pad_id},
              {"torch_dtype", "float32"},
              {"use_cache", true}});
  write_json(folder / "generation_config.json",
             {{"eos_token_id", eos_id}, {"pad_token_id", pad_id}});
  write_bytes(folder / "model.safetensors", safetensors(shape, random));
}

} // namespace tiny
