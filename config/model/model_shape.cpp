#include "config/model/model_shape.hpp"

#include "config/model/family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace troupe {

namespace {

/// Collects parameters layer by layer.
class ParameterList {
public:
  void matrix(std::string name, std::int64_t rows, std::int64_t cols,
              std::int32_t layer, std::int8_t split_dim,
              std::int64_t split_unit = 1) {
    all.push_back({.name = std::move(name),
                   .rows = rows,
                   .cols = cols,
                   .vector = false,
                   .layer = layer,
                   .split_dim = split_dim,
                   .decay = true,
                   .balances = false,
                   .expert = -1,
                   .split_unit = split_unit,
                   .stored = {}});
  }
  void vector(std::string name, std::int64_t rows, std::int32_t layer,
              std::int8_t split_dim, std::int64_t split_unit = 1) {
    all.push_back({.name = std::move(name),
                   .rows = rows,
                   .cols = 1,
                   .vector = true,
                   .layer = layer,
                   .split_dim = split_dim,
                   .decay = false,
                   .balances = false,
                   .expert = -1,
                   .split_unit = split_unit,
                   .stored = {}});
  }
  std::vector<ParameterShape> all;
};

constexpr std::int8_t split_none = -1;
constexpr std::int8_t split_rows = 0;
constexpr std::int8_t split_cols = 1;

void add_attention(const ModelShape& shape, const std::string& prefix,
                   std::int32_t layer, ParameterList& list) {
  const auto q_rows = shape.num_heads * shape.head_dim;
  const auto kv_rows = shape.num_kv_heads * shape.head_dim;
  auto projection = [&](const char* name, std::int64_t rows) {
    list.matrix(prefix + name + ".weight", rows, shape.hidden_size, layer,
                split_rows, shape.head_dim);
    if (shape.attention_bias)
      list.vector(prefix + name + ".bias", rows, layer, split_rows,
                  shape.head_dim);
  };
  projection("q_proj", q_rows);
  projection("k_proj", kv_rows);
  projection("v_proj", kv_rows);
  list.matrix(prefix + "o_proj.weight", shape.hidden_size, q_rows, layer,
              split_cols, shape.head_dim);
  if (shape.output_bias)
    list.vector(prefix + "o_proj.bias", shape.hidden_size, layer, split_none);
}

void add_mlp(const ModelShape& shape, std::int64_t width,
             const std::string& prefix, std::int32_t layer,
             ParameterList& list) {
  for (const char* name : {"gate_proj", "up_proj"}) {
    if (!shape.gated_mlp && name == std::string_view("gate_proj"))
      continue;
    list.matrix(prefix + name + ".weight", width, shape.hidden_size, layer,
                split_rows);
    if (shape.mlp_bias)
      list.vector(prefix + name + ".bias", width, layer, split_rows);
  }
  list.matrix(prefix + "down_proj.weight", shape.hidden_size, width, layer,
              split_cols);
  if (shape.mlp_bias)
    list.vector(prefix + "down_proj.bias", shape.hidden_size, layer,
                split_none);
}

/// Adds the weight of a norm, and its bias if the family has one.
void add_norm(const ModelShape& shape, const std::string& name,
              std::int32_t layer, ParameterList& list) {
  list.vector(name + ".weight", shape.hidden_size, layer, split_none);
  if (shape.norm == NormKind::layer)
    list.vector(name + ".bias", shape.hidden_size, layer, split_none);
}

/// A norm of all heads is split over tp ranks as the heads are.
void add_qk_norms(const ModelShape& shape, const std::string& prefix,
                  std::int32_t layer, ParameterList& list) {
  if (shape.qk_norm == QkNormScope::none)
    return;
  if (shape.qk_norm == QkNormScope::head) {
    for (const char* name : {"q_norm.weight", "k_norm.weight"})
      list.vector(prefix + name, shape.head_dim, layer, split_none);
    return;
  }
  list.vector(prefix + "q_norm.weight", shape.num_heads * shape.head_dim, layer,
              split_rows, shape.head_dim);
  list.vector(prefix + "k_norm.weight", shape.num_kv_heads * shape.head_dim,
              layer, split_rows, shape.head_dim);
}

void add_experts(const ModelShape& shape, const std::string& prefix,
                 std::int32_t layer, ParameterList& list) {
  const ExpertShape& experts = shape.experts;
  list.matrix(prefix + "router.weight", experts.count, shape.hidden_size, layer,
              split_none);
  if (experts.router.corrected) {
    list.vector(prefix + "router.correction", experts.count, layer, split_none);
    list.all.back().balances = true;
  }
  for (std::int32_t e = 0; e < experts.count; ++e) {
    const auto first = list.all.size();
    add_mlp(shape, experts.width, fmt::format("{}experts.{}.", prefix, e),
            layer, list);
    for (auto i = first; i < list.all.size(); ++i)
      list.all[i].expert = e;
  }
  if (experts.shared_width > 0)
    add_mlp(shape, experts.shared_width, prefix + "shared_experts.", layer,
            list);
}

void add_layer(const ModelShape& shape, std::int32_t layer,
               ParameterList& list) {
  const auto prefix = fmt::format("model.layers.{}.", layer);
  if (shape.norms_inputs())
    add_norm(shape, prefix + "input_layernorm", layer, list);
  add_attention(shape, prefix + "self_attn.", layer, list);
  add_qk_norms(shape, prefix + "self_attn.", layer, list);
  add_norm(shape, prefix + "post_attention_layernorm", layer, list);
  if (shape.norm_placement == NormPlacement::both)
    add_norm(shape, prefix + "pre_feedforward_layernorm", layer, list);
  if (shape.experts.in_layer(layer))
    add_experts(shape, prefix + "mlp.", layer, list);
  else
    add_mlp(shape, shape.intermediate_size, prefix + "mlp.", layer, list);
  if (shape.norms_outputs())
    add_norm(shape, prefix + "post_feedforward_layernorm", layer, list);
}

} // namespace

std::vector<ParameterShape> parameters(const ModelShape& shape) {
  ParameterList list;
  const auto hidden = shape.hidden_size;
  const auto last = static_cast<std::int32_t>(shape.num_layers);
  list.matrix("model.embed_tokens.weight", shape.vocab_size, hidden, -1,
              split_rows);
  if (shape.learned_positions)
    list.matrix("model.embed_positions.weight", shape.max_positions, hidden, -1,
                split_none);
  for (std::int32_t layer = 0; layer < last; ++layer)
    add_layer(shape, layer, list);
  add_norm(shape, "model.norm", last, list);
  if (shape.scalar_head)
    list.matrix("score.weight", 1, hidden, last, split_none);
  else if (!shape.tied_embeddings)
    list.matrix("lm_head.weight", shape.vocab_size, hidden, last, split_rows);
  const Family* family = find_family(shape.family);
  if (family != nullptr && family->stored != nullptr)
    for (ParameterShape& parameter : list.all)
      parameter.stored = family->stored(shape, parameter);
  return std::move(list.all);
}

std::uint64_t num_parameters(const ModelShape& shape) {
  std::uint64_t sum = 0;
  for (const auto& parameter : parameters(shape))
    sum += static_cast<std::uint64_t>(parameter.num_elements());
  return sum;
}

std::uint64_t weight_bytes(const ModelShape& shape, DType type) {
  return num_parameters(shape) * size_bytes(type);
}

double forward_flops(const ModelShape& shape, double tokens,
                     double squared_lengths) {
  const auto hidden = static_cast<double>(shape.hidden_size);
  const auto q_width = static_cast<double>(shape.num_heads * shape.head_dim);
  const auto kv_width
    = static_cast<double>(shape.num_kv_heads * shape.head_dim);
  const auto layers = static_cast<double>(shape.num_layers);
  double weights = layers * hidden * (2 * q_width + 2 * kv_width);
  const ExpertShape& experts = shape.experts;
  for (std::int64_t layer = 0; layer < shape.num_layers; ++layer) {
    auto width = static_cast<double>(shape.mlp_width(layer));
    if (experts.in_layer(layer)) {
      width += static_cast<double>(experts.width * experts.per_token);
      weights += hidden * static_cast<double>(experts.count);
    }
    weights += (shape.gated_mlp ? 3 : 2) * hidden * width;
  }
  weights
    += hidden
       * (shape.scalar_head ? 1.0 : static_cast<double>(shape.vocab_size));
  // q k^T and p v: 2 products of 2 L^2 width each, of which half is causal
  const double attention = layers * 2 * q_width * squared_lengths;
  return 2 * tokens * weights + attention;
}

} // namespace troupe
