#include "config/model/lora.hpp"

#include "config/model/model_shape.hpp"

#include <algorithm>

namespace troupe {

namespace {

constexpr std::string_view lora_weight = ".weight";

std::string_view lora_module(std::string_view matrix) {
  return matrix.substr(0, matrix.size() - lora_weight.size());
}

/// Returns the last word of a matrix' module: "q_proj".
std::string_view lora_word(std::string_view matrix) {
  const auto module = lora_module(matrix);
  return module.substr(module.rfind('.') + 1);
}

bool can_be_adapted(const ModelShape& shape, const ParameterShape& parameter) {
  const bool in_layer = parameter.layer >= 0
                        && parameter.layer < shape.num_layers
                        && !parameter.vector;
  return in_layer && parameter.expert < 0
         && !parameter.name.ends_with(".router.weight")
         && parameter.stored.rows == 0 && !parameter.stored.transposed;
}

/// Returns one of the pair: rows and columns of the matrix give it its size and
/// its split over tp ranks.
ParameterShape adapter(const ParameterShape& matrix, std::string name) {
  ParameterShape pair = matrix;
  pair.name = std::move(name);
  pair.decay = true;
  return pair;
}

/// Returns the name of a parameter's tensor in PEFT's files.
std::string peft_name(const ParameterShape& matrix, const char* which) {
  return "base_model.model." + std::string(lora_module(matrix.file_name()))
         + which;
}

void add_pair(const ParameterShape& matrix, std::int64_t rank,
              std::vector<ParameterShape>& list) {
  ParameterShape a = adapter(matrix, lora_a_name(matrix.name));
  a.rows = rank;
  a.split_dim = matrix.split_dim == 1 ? 1 : -1;
  a.stored = {.name = peft_name(matrix, ".lora_A.weight")};
  ParameterShape b = adapter(matrix, lora_b_name(matrix.name));
  b.cols = rank;
  b.split_dim = matrix.split_dim == 0 ? 0 : -1;
  b.stored = {.name = peft_name(matrix, ".lora_B.weight"),
              .heads = matrix.stored.heads};
  list.push_back(std::move(a));
  list.push_back(std::move(b));
}

/// Returns a parameter that is trained whole (PEFT's modules_to_save).
ParameterShape peft_whole(ParameterShape parameter) {
  parameter.stored = {.name = peft_name(parameter, ".weight")};
  return parameter;
}

} // namespace

std::vector<std::string> lora_targets(const ModelShape& shape) {
  std::vector<std::string> words;
  for (const auto& parameter : parameters(shape))
    if (parameter.layer == 0 && can_be_adapted(shape, parameter))
      words.emplace_back(lora_word(parameter.name));
  return words;
}

std::vector<ParameterShape> adapters(const ModelShape& shape) {
  std::vector<ParameterShape> list;
  if (!shape.lora.exists())
    return list;
  const auto& targets = shape.lora.targets;
  for (const auto& parameter : parameters(shape))
    if (can_be_adapted(shape, parameter)
        && std::ranges::count(targets, lora_word(parameter.name)) > 0)
      add_pair(parameter, shape.lora.rank, list);
    else if (parameter.name == "score.weight")
      list.push_back(peft_whole(parameter));
  return list;
}

std::vector<ParameterShape> trained_parameters(const ModelShape& shape) {
  return shape.lora.exists() ? adapters(shape) : parameters(shape);
}

ModelShape frozen_shape(ModelShape shape) {
  shape.lora = {};
  return shape;
}

std::string lora_a_name(std::string_view matrix) {
  return std::string(lora_module(matrix)) + ".lora_A.weight";
}

std::string lora_b_name(std::string_view matrix) {
  return std::string(lora_module(matrix)) + ".lora_B.weight";
}

} // namespace troupe
