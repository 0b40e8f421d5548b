#include "models/hf/stored_parameters.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

namespace troupe::models {

namespace {

std::int64_t stored_rows(const ParameterShape& parameter) {
  return parameter.stored.rows > 0 ? parameter.stored.rows : parameter.rows;
}

/// Returns "h.0.ln_1.bias" for "transformer.h.0.ln_1.bias".
std::string bare_name(const std::string& name) {
  for (const char* prefix : {"model.", "transformer.", "gpt_neox."})
    if (name.starts_with(prefix))
      return name.substr(std::strlen(prefix));
  return name;
}

/// Returns the names that checkpoints give a parameter's tensor.
std::array<std::string, 4> names_of(const ParameterShape& parameter) {
  const std::string& name = parameter.file_name();
  return {name, bare_name(name), "language_model." + name,
          "model.language_model." + bare_name(name)};
}

bool as_it_is(const ParameterShape& parameter) {
  return !parameter.stored.transposed
         && stored_rows(parameter) == parameter.rows
         && parameter.stored.heads.head_dim == 0;
}

/// Returns the end of the rows from `row` on that are neighbours in the tensor
/// too, in the same order.
std::int64_t run_end(const StoredAs& stored, std::int64_t row,
                     std::int64_t end) {
  std::int64_t next = row + 1;
  const std::int64_t offset = stored.row_of(row) - row;
  while (next < end && stored.row_of(next) - next == offset)
    ++next;
  return next;
}

// Copies a parameter's values to their position in the tensor that contains it.
void place_values(const ParameterValues& values, float* tensor) {
  const ParameterShape& p = *values.parameter;
  const auto* from = reinterpret_cast<const float*>(values.bytes.data());
  if (!p.stored.transposed) {
    for (std::int64_t i = 0; i < p.rows; ++i)
      std::copy_n(from + i * p.cols, p.cols,
                  tensor + p.stored.row_of(i) * p.cols);
    return;
  }
  const std::int64_t width = stored_rows(p);
  for (std::int64_t i = 0; i < p.rows; ++i)
    for (std::int64_t j = 0; j < p.cols; ++j)
      tensor[j * width + p.stored.row_of(i)] = from[i * p.cols + j];
}

bool may_ignore_tensor(const std::string& name) {
  for (const char* part : {"vision_tower.", "multi_modal_projector."})
    if (name.find(part) != std::string::npos)
      return true;
  return name == "lm_head.weight" || name == "score.weight"
         || name.ends_with("rotary_emb.inv_freq")
         || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")
         || name.ends_with(".attention.bias")
         || name.ends_with(".attention.masked_bias");
}

} // namespace

std::vector<std::int64_t> stored_shape(const ParameterShape& parameter) {
  const std::int64_t rows = stored_rows(parameter);
  if (parameter.vector)
    return {rows};
  if (parameter.stored.transposed)
    return {parameter.cols, rows};
  return {rows, parameter.cols};
}

const StoredTensor* find_stored(const StoredWeights& weights,
                                const ParameterShape& parameter) {
  for (const std::string& name : names_of(parameter))
    if (const StoredTensor* found = weights.find(name))
      return found;
  return nullptr;
}

namespace {

/// Returns the layers of a checkpoint that predict further tokens, as
/// "model.layers.46.": each has a projection of the stream beside the
/// embedding of the next token.
std::vector<std::string> further_layers(const StoredWeights& stored) {
  std::vector<std::string> layers;
  for (const std::string& name : stored.names())
    if (const auto end = name.rfind("eh_proj.weight"); end != std::string::npos)
      layers.push_back(name.substr(0, end));
  return layers;
}

} // namespace

void refuse_unknown_tensors(const StoredWeights& stored,
                            const std::vector<ParameterShape>& parameters) {
  std::unordered_set<std::string> known;
  for (const ParameterShape& parameter : parameters)
    for (std::string& name : names_of(parameter))
      known.insert(std::move(name));
  const std::vector<std::string> further = further_layers(stored);
  const auto is_further = [&](const std::string& name) {
    return std::ranges::any_of(further, [&](const std::string& layer) {
      return name.starts_with(layer);
    });
  };
  for (const std::string& name : stored.names())
    if (!known.contains(name) && !may_ignore_tensor(name) && !is_further(name))
      throw ConfigError(ConfigError::Parts{
        Place{stored.at(name).file, 0}, name, "a parameter of the model",
        "a tensor that config.json does not account for",
        "is a bias or a layer missing in config.json?"});
}

void read_stored_box(const StoredTensor& tensor,
                     const ParameterShape& parameter, std::int64_t row0,
                     std::int64_t row1, std::int64_t col0, std::int64_t col1,
                     float* data) {
  const StoredAs& stored = parameter.stored;
  const std::int64_t rows = row1 - row0;
  const std::int64_t cols = col1 - col0;
  const auto bytes_of = [&](float* floats, std::int64_t num_rows) {
    return std::as_writable_bytes(
      std::span<float>(floats, static_cast<std::size_t>(num_rows * cols)));
  };
  if (!stored.transposed) {
    for (std::int64_t begin = row0; begin < row1;) {
      const std::int64_t end = run_end(stored, begin, row1);
      const std::int64_t first = stored.row_of(begin);
      tensor.copy_box_to(first, first + end - begin, col0, col1, DType::f32,
                         bytes_of(data + (begin - row0) * cols, end - begin));
      begin = end;
    }
    return;
  }
  TROUPE_CHECK(stored.heads.head_dim == 0,
               "rows of heads in an order of their own are not transposed");
  std::vector<float> turned(static_cast<std::size_t>(rows * cols));
  const std::int64_t first = stored.row_of(row0);
  tensor.copy_box_to(col0, col1, first, first + rows, DType::f32,
                     bytes_of(turned.data(), rows));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      data[i * cols + j] = turned[static_cast<std::size_t>(j * rows + i)];
}

void read_held_boxes(const StoredWeights& weights,
                     const std::vector<ParameterShape>& parameters,
                     const plans::Shard& held, float* plane) {
  for (const plans::Box& box : held.boxes) {
    const ParameterShape& whole = parameters[box.parameter];
    float* to = plane + box.offset_bytes / sizeof(float);
    if (const StoredTensor* tensor = find_stored(weights, whole))
      read_stored_box(*tensor, whole, box.row0, box.row1, box.col0, box.col1,
                      to);
    else
      std::fill_n(to, box.num_elements(), 0.0F);
  }
}

FileTensors::FileTensors(const std::vector<ParameterValues>& values,
                         DType stored) {
  std::vector<std::size_t> buffer_of; // per tensor, if it is rewritten
  for (const ParameterValues& given : values) {
    const ParameterShape& p = *given.parameter;
    TROUPE_CHECK(given.bytes.size()
                   == static_cast<std::size_t>(p.num_elements())
                        * sizeof(float),
                 "values of another size: " + p.name);
    auto known
      = std::ranges::find(tensors_, p.file_name(), &TensorToStore::name);
    if (known == tensors_.end()) {
      tensors_.push_back({p.file_name(), stored_shape(p), DType::f32,
                          p.balances ? DType::f32 : stored, given.bytes});
      buffer_of.push_back(rewritten_.size());
      if (as_it_is(p))
        continue;
      rewritten_.emplace_back(
        static_cast<std::size_t>(stored_rows(p) * p.cols));
      known = tensors_.end() - 1;
    }
    const auto at = static_cast<std::size_t>(known - tensors_.begin());
    place_values(given, rewritten_[buffer_of[at]].data());
    known->data
      = std::as_bytes(std::span<const float>(rewritten_[buffer_of[at]]));
  }
}

} // namespace troupe::models
