// Maps parameters to the tensors of checkpoints: most are identical, but a
// family may store a matrix transposed, several parameters in one tensor (GPT-2
// does both), or the rows of heads in an order of their own (GPT-NeoX, GLM).
#pragma once

#include "config/model/model_shape.hpp"
#include "models/hf/safetensors.hpp"
#include "plans/weights/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

/// Returns the shape of the tensor that contains the parameter.
std::vector<std::int64_t> stored_shape(const ParameterShape& parameter);

/// Returns the tensor that contains the parameter, or nullptr. Checkpoints of a
/// bare model omit the first word of names ("model.", "transformer."); those of
/// models of images and text have "language_model" in front or after it.
const StoredTensor* find_stored(const StoredWeights& weights,
                                const ParameterShape& parameter);
/// Throws ConfigError naming a tensor that belongs to no parameter, unless it
/// is one that models have besides: heads that the role replaces, buffers of
/// old checkpoints, layers that predict a second token (GLM-4.5), and what
/// models of images and text have besides the text model.
void refuse_unknown_tensors(const StoredWeights& weights,
                            const std::vector<ParameterShape>& parameters);

/// Reads rows [row0, row1) and columns [col0, col1) of the parameter as f32,
/// row-major, into `data`.
void read_stored_box(const StoredTensor& tensor,
                     const ParameterShape& parameter, std::int64_t row0,
                     std::int64_t row1, std::int64_t col0, std::int64_t col1,
                     float* data);

/// Reads the boxes that a device holds to their offsets in `plane`; zeros for
/// missing tensors. Other bytes of the files are not accessed.
void read_held_boxes(const StoredWeights& weights,
                     const std::vector<ParameterShape>& parameters,
                     const plans::Shard& held, float* plane);

/// One parameter's f32 values, row-major.
struct ParameterValues {
  const ParameterShape* parameter = nullptr;
  std::span<const std::byte> bytes;
};

/// Parameters as the tensors of a checkpoint.
class FileTensors {
public:
  /// Takes a reference to the values, which must outlive it.
  FileTensors(const std::vector<ParameterValues>& values, DType stored);
  const std::vector<TensorToStore>& tensors() const {
    return tensors_;
  }

private:
  std::vector<std::vector<float>> rewritten_; ///< transposed or joined
  std::vector<TensorToStore> tensors_;
};

} // namespace troupe::models
